// The transformer: one layer, in float64, as docs/model-definition.md defines it.
//
// It is written with plain loops, since those of typed arrays' own methods are several times slower.
//
// Shapes: V tokens in the vocabulary, D width of the residual stream, H heads of width K, F width of
// the MLP. A matrix of m rows and n columns is a flat array of m·n numbers, one row after the other.

/** Tensors of a safetensors file by name, converted to float64. */
function readTensors(bytes) {
  const headerLength = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + headerLength)));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets.map((offset) => 8 + headerLength + offset);
    const view = new DataView(bytes.buffer, bytes.byteOffset + begin, end - begin);
    const numbers = Float64Array.from({ length: (end - begin) / 4 }, (_, i) => view.getFloat32(4 * i, true));
    tensors[name] = { shape: entry.shape, numbers };
  }
  return tensors;
}

/** The error function, as a series. All its terms are positive, so nothing cancels. */
function erfSeries(x) {
  let term = x, sum = x;
  for (let n = 1; term > 1e-17 * sum; n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 * Math.exp(-x * x) * sum) / Math.sqrt(Math.PI);
}

const ERF_STEP = 1 / 32, ERF_LAST = 6, ERF_DEGREE = 8; // 1 - erf(6) is below 3e-17

/** Taylor polynomials of erf around 0, 1/32, 2/32 and so on. Their next term is below 1e-18. */
const erfPolynomials = Array.from({ length: ERF_LAST / ERF_STEP + 1 }, (_, i) => {
  const x = i * ERF_STEP, coefficients = [erfSeries(x)];
  let before = 0, derivative = (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x), factorial = 1;
  for (let n = 1; n <= ERF_DEGREE; n++) {
    factorial *= n;
    coefficients.push(derivative / factorial);
    [before, derivative] = [derivative, -2 * x * derivative - 2 * (n - 1) * before];
  }
  return Float64Array.from(coefficients);
});

/** The error function, from the nearest of these polynomials, which takes a tenth of the time. */
function erf(x) {
  const size = Math.abs(x);
  if (size > ERF_LAST) return Math.sign(x);
  const nearest = Math.round(size / ERF_STEP), coefficients = erfPolynomials[nearest], h = size - nearest * ERF_STEP;
  let sum = coefficients[ERF_DEGREE];
  for (let n = ERF_DEGREE - 1; n >= 0; n--) sum = sum * h + coefficients[n];
  return x < 0 ? -sum : sum;
}

const gelu = (x) => (x * (1 + erf(x / Math.SQRT2))) / 2;
const geluTanh = (x) => (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))) / 2;
const silu = (x) => x / (1 + Math.exp(-x));
const relu = (x) => Math.max(x, 0);
const activations = { relu, gelu, "gelu-tanh": geluTanh, geglu: gelu, swiglu: silu };

class Transformer {
  /**
   * settings: heads, norm ("layer" or "rms"), epsilon, activation (one of `activations`), and windows: a
   *   list of [coordinate, low, high], one for each table of relative biases.
   * vocabulary: the tokens, in the order of their ids.
   */
  constructor(settings, vocabulary, tensors) {
    this.settings = settings;
    this.vocabulary = vocabulary;
    this.ids = new Map(vocabulary.map((text, id) => [text, id]));
    this.tensors = tensors;
    this.distances = [...settings.windows];
    if (!settings.windows.some(([coordinate]) => coordinate === "row")) this.distances.push(["row", -2, 0]);
    this.activation = activations[settings.activation];
    // In a single layer, queries, keys and values depend on the token alone.
    this.tokens = vocabulary.map((_, id) => {
      const width = this.numbers("embedding.weight").length / vocabulary.length;
      const embedded = this.norm("embedding_norm", this.numbers("embedding.weight").subarray(id * width, (id + 1) * width));
      const normed = this.norm("blocks.0.attention_norm", embedded);
      const map = (name) => this.linear(`blocks.0.attention.${name}`, normed);
      return { embedded, query: map("query"), key: map("key"), value: map("value") };
    });
  }

  /** A copy in which one number of one tensor has another value. */
  withWeight(name, index, value) {
    const numbers = this.numbers(name).slice();
    numbers[index] = value;
    const tensors = { ...this.tensors, [name]: { ...this.tensors[name], numbers } };
    return new Transformer(this.settings, this.vocabulary, tensors);
  }

  numbers(name) {
    return this.tensors[name]?.numbers;
  }

  /** W x + b, or W x where the map has no bias. */
  linear(name, x) {
    const weight = this.numbers(name === "head" && !this.numbers("head.weight") ? "embedding.weight" : `${name}.weight`);
    const bias = this.numbers(`${name}.bias`);
    const out = new Float64Array(weight.length / x.length);
    for (let row = 0, at = 0; row < out.length; row++) {
      let sum = bias ? bias[row] : 0;
      for (let column = 0; column < x.length; column++) sum += weight[at++] * x[column];
      out[row] = sum;
    }
    return out;
  }

  /** LayerNorm or RMSNorm over the width, or x itself where the model has no such norm. */
  norm(name, x) {
    const weight = this.numbers(`${name}.weight`), bias = this.numbers(`${name}.bias`);
    if (!weight) return x;
    let mean = 0, square = 0;
    if (this.settings.norm === "layer") {
      for (let i = 0; i < x.length; i++) mean += x[i] / x.length;
    }
    for (let i = 0; i < x.length; i++) square += ((x[i] - mean) * (x[i] - mean)) / x.length;
    const scale = 1 / Math.sqrt(square + this.settings.epsilon);
    const out = new Float64Array(x.length);
    for (let i = 0; i < x.length; i++) out[i] = (x[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0);
    return out;
  }

  /** One hidden layer; where the MLP is gated, a second map of x multiplies the hidden numbers. */
  mlp(name, x) {
    const hidden = this.linear(`${name}.up`, x);
    const gate = this.numbers(`${name}.gate.weight`) && this.linear(`${name}.gate`, x);
    for (let i = 0; i < hidden.length; i++) hidden[i] = this.activation(hidden[i]) * (gate ? gate[i] : 1);
    return this.linear(`${name}.down`, hidden);
  }

  /** Whether a token attends to another token, which is itself or stands before it. */
  sees(query, key) {
    return query === key || this.settings.windows.every(([coordinate, low, high]) => {
      const q = query[coordinate], k = key[coordinate];
      return k === EVERYWHERE || (q >= 0 && k >= 0 && low <= k - q && k - q <= high);
    });
  }

  /**
   * Run the model at the last token of a line.
   *
   * line: tokens {text, place, row, step}.
   * Returns the logits of the next token, the indices of the tokens seen, and for each head the shares
   * of attention that these receive.
   */
  run(line) {
    const heads = this.settings.heads, query = line.at(-1);
    const seen = [];
    for (let i = 0; i < line.length; i++) if (this.sees(query, line[i])) seen.push(i);
    const own = this.tokens[this.ids.get(query.text)];
    const keys = seen.map((i) => this.tokens[this.ids.get(line[i].text)]);
    const biases = seen.map((i) => this.bias(query, line[i]));
    const width = own.query.length / heads;
    const mixed = new Float64Array(own.query.length);
    const pattern = [];
    for (let head = 0; head < heads; head++) {
      const from = head * width;
      const scores = keys.map(({ key }, s) => {
        let dot = 0;
        for (let i = from; i < from + width; i++) dot += own.query[i] * key[i];
        return dot / Math.sqrt(width) + biases[s][head];
      });
      const shares = softmax(scores);
      keys.forEach(({ value }, s) => {
        for (let i = from; i < from + width; i++) mixed[i] += shares[s] * value[i];
      });
      pattern.push(shares);
    }
    const resid = add(own.embedded, this.linear("blocks.0.attention.output", mixed));
    const last = add(resid, this.mlp("blocks.0.mlp", this.norm("blocks.0.mlp_norm", resid)));
    const out = this.numbers("final_mlp.up.weight") ? this.mlp("final_mlp", last) : last;
    return { logits: this.linear("head", this.norm("final_norm", out)), seen, pattern };
  }

  /** What each head adds to the score of a pair, for where the two tokens stand. */
  bias(query, key) {
    const sum = new Float64Array(this.settings.heads);
    this.settings.windows.forEach((window, number) => {
      const row = difference(query, key, window);
      const table = this.numbers(`blocks.0.attention.relative.${number}.table`);
      for (let head = 0; head < sum.length; head++) sum[head] += table[row * sum.length + head];
    });
    return sum;
  }

  /**
   * Return the tokens and their distances from the last one as a short text. The model's output depends on
   * nothing else. Distances in rows are included even if the model has no window of rows, because the
   * count of neighbourhoods distinguishes the operands.
   */
  keyOf(tokens) {
    const query = tokens.at(-1);
    const codes = tokens.map((token) => {
      let code = this.ids.get(token.text);
      for (const window of this.distances) code = code * (window[2] - window[1] + 2) + difference(query, token, window);
      return code;
    });
    return String.fromCharCode(...codes);
  }

  /** Write the line of a problem to its end: greedy decoding. */
  write(problem) {
    const { notation } = problem, line = notation.prompt(problem), steps = [];
    while (steps.length < notation.mostTokens(problem) && steps.at(-1)?.text !== END) {
      const { logits, seen, pattern } = this.run(line);
      const chosen = argmax(logits);
      steps.push({ text: this.vocabulary[chosen], share: softmax(logits)[chosen], logits, seen, pattern });
      line.push(notation.next(line, this.vocabulary[chosen]));
    }
    return { line, steps };
  }
}

/** Return the row of a bias table for the distance between two tokens; the last row if they have none. */
function difference(query, key, [coordinate, low, high]) {
  const q = query[coordinate], k = key[coordinate];
  return q >= 0 && k >= 0 ? Math.min(Math.max(k - q, low), high) - low : high - low + 1;
}

function add(x, y) {
  const sum = new Float64Array(x.length);
  for (let i = 0; i < x.length; i++) sum[i] = x[i] + y[i];
  return sum;
}

function softmax(scores) {
  const largest = Math.max(...scores);
  const powers = Array.from(scores, (score) => Math.exp(score - largest));
  const sum = powers.reduce((total, power) => total + power);
  return powers.map((power) => power / sum);
}

function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
