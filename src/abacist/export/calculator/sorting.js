// Sorting: insertion sort, as docs/certificate-sorting.md defines it, and every neighbourhood.
//
// `a:821,b:9,c:35=a,8>ba,0<b8>ca<end>`: each number is inserted into the list of those before it. In the prompt
// number k stands in row 2 k. A token of the work sees the start token, itself, and the one token of the
// prompt that stands at its own coordinates, if any: the one it *points to*.

class Sorting extends Notation {
  example = "821, 9, 35, 340, 9";
  suggestions = {
    "a small one": () => "3, 1, 2",
    "equal numbers": () => "7, 70, 7, 17, 7",
    "twelve numbers": () => Array.from({ length: 12 }, () => randomNumber(Math.random, 3)).join(", "),
  };
  explanation = "The model names the numbers a, b, c and so on, and inserts each into the list of those before it. It compares digit by digit, from the highest place on: < keeps the number in the list, > inserts the new one before it, and ~ goes on to the next place. The last list is the answer.";
  name = "Sorting";
  why = "Each token of the work depends on itself and on the one token that it points to.";
  conclusion = "Whatever numbers you type, every step of sorting them is among these.";
  isWork = true;

  /** mostNumbers: how many numbers a list has at most. */
  constructor(mostNumbers) {
    super();
    this.labels = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"].slice(0, mostNumbers);
    this.texts = [...DIGITS, ...this.labels, ",", "=", "<", "~", ">"];
    const rows = this.texts.length, columns = rows - 2; // nothing points to <, ~ or >, but some to nothing
    this.maps = [
      { caption: "The last token down: digits, names, and signs. Across, the token that it points to: nothing, a digit, a name, a comma, or =.", rows, columns },
    ];
  }

  parse(text) {
    const numbers = text.replace(/[a-zA-Z]\s*:/g, "").split(/[\s,;]+/).filter(Boolean);
    if (!numbers.length || !numbers.every((number) => /^[0-9]+$/.test(number))) {
      throw new Error("Type whole numbers with commas between them, such as 821, 9, 35.");
    }
    const most = this.labels.length;
    if (numbers.length > most || numbers.some((number) => number.length > 20)) {
      throw new Error(`This page sorts at most ${most} numbers, for which the model has names, of at most 20 digits.`);
    }
    return { notation: this, numbers: numbers.map((number) => number.replace(/^0+(?=.)/, "")) };
  }

  randomProblem(random) {
    const most = Math.min(this.labels.length, 12);
    return Array.from({ length: 1 + Math.floor(random() * most) }, () => randomNumber(random, 3)).join(",");
  }

  asText({ numbers }) {
    return numbers.map((number, k) => `${this.labels[k]}: ${number}`).join(", ") + ". In order: ";
  }

  prompt({ numbers }) {
    const line = [this.start];
    numbers.forEach((number, k) => {
      const row = 2 * (k + 1);
      if (k) line.push({ text: ",", place: 0, row: row - 1, step: EVERYWHERE });
      line.push({ text: this.labels[k], place: 0, row, step: EVERYWHERE, operand: k + 1 });
      line.push({ text: ":", place: NOWHERE, row, step: EVERYWHERE });
      [...number].forEach((text, i) => line.push({ text, place: number.length - i, row, step: EVERYWHERE, operand: k + 1 }));
    });
    const lengths = [0, ...numbers.map((number) => number.length)];
    const work = { lengths, step: 0, listed: [], insertions: 0, sames: 0, begin: 0, beginBefore: 0, insertionsBefore: 0, samesBefore: 0, inserted: 1 };
    return [...line, { text: "=", place: 0, row: 2 * numbers.length + 1, step: EVERYWHERE, work }];
  }

  /** Where a token of the work points: to the token of the prompt that decides what follows. */
  next(line, text) {
    const work = { ...line.at(-1).work };
    const isLabel = this.labels.includes(text), isComma = text === ",", isDigit = /^[0-9]$/.test(text);
    work.step++;
    if (isLabel) work.listed = [...work.listed, this.labels.indexOf(text) + 1];
    work.insertions += text === ">";
    work.sames += text === "~";
    if (isComma) {
      work.inserted++;
      work.beginBefore = work.begin;
      work.begin = work.listed.length;
      work.insertionsBefore = work.insertions;
    }
    if (isLabel || isComma) work.samesBefore = work.sames;

    const inList = work.listed.length - work.begin, isIn = work.insertions > work.insertionsBefore;
    const nextOld = work.beginBefore + inList - (isIn && isLabel);
    const isOld = nextOld < work.begin;
    const old = isOld ? work.listed[nextOld] : 0;
    const length = (number) => work.lengths[number] ?? 0;
    const top = Math.max(length(old), length(work.inserted));
    const pointsToNew = isDigit || text === ">" || (isLabel && !isOld);
    const number = pointsToNew ? work.inserted : old;
    const toLabel = text === "<" || text === ">" || (isLabel && (isIn || !isOld));
    const points = isLabel || isComma || isDigit || "<~>".includes(text);
    const isNowhere = !points || number === 0;
    return {
      text, work, step: work.step,
      place: isNowhere ? NOWHERE : toLabel ? 0 : Math.max(top - (work.sames - work.samesBefore), 0),
      row: isNowhere ? NOWHERE : 2 * number + (isLabel && inList >= work.inserted),
    };
  }

  mostTokens({ numbers }) {
    const longest = Math.max(...numbers.map((number) => number.length));
    return ((numbers.length * (numbers.length + 1)) / 2) * (2 * longest + 2) + 1;
  }

  /** The labels of the last list; null unless each token is of the kind that the one before it calls for. */
  read(problem, written) {
    const line = this.prompt(problem), last = problem.numbers.length;
    const labels = [];
    for (const text of written) {
      const before = line.at(-1);
      const kind = this.labels.includes(text) ? "label" : /^[0-9]$/.test(text) ? "digit" : "<~>".includes(text) ? "mark" : text;
      let due = before.place > 0 ? "digit" : "label";
      if (before.place === 0 && before.row % 2 === 1) due = before.row === 2 * last + 1 ? END : ",";
      if (before.text === "=") due = "label";
      if (before.work.step > 0 && /^[0-9]$/.test(before.text)) due = "mark";
      if (kind !== due) return null;
      if (kind === END) break;
      const token = this.next(line, text);
      line.push(token);
      if (kind === "label" && token.work.inserted >= last) labels.push(text);
    }
    const isComplete = written.at(-1) === END && [...labels].sort((x, y) => this.labels.indexOf(x) - this.labels.indexOf(y)).join("") === this.labels.slice(0, last).join("");
    return isComplete ? labels.join("") : null;
  }

  rightAnswer({ numbers }) {
    const order = numbers.map((_, k) => k).sort((i, j) => {
      const [x, y] = [BigInt(numbers[i]), BigInt(numbers[j])];
      return x < y ? -1 : x > y ? 1 : i - j;
    });
    return order.map((k) => this.labels[k]).join("");
  }

  /** The tokens that a right answer consists of, with its work. */
  rightTokens({ numbers }) {
    const tokens = [];
    let list = [];
    numbers.forEach((number, inserted) => {
      const longer = [];
      for (const old of list) {
        const width = Math.max(numbers[old].length, number.length);
        const [x, y] = [numbers[old], number].map((text) => text.padStart(width, "0"));
        for (let i = 0; !longer.includes(inserted) && i < width; i++) {
          tokens.push(x[i], x[i] < y[i] ? "<" : x[i] > y[i] ? ">" : "~");
          if (x[i] > y[i]) longer.push(inserted), tokens.push(this.labels[inserted]);
          if (x[i] !== y[i]) break;
        }
        longer.push(old);
        tokens.push(this.labels[old]);
      }
      if (!longer.includes(inserted)) longer.push(inserted), tokens.push(this.labels[inserted]);
      list = longer;
      tokens.push(inserted < numbers.length - 1 ? "," : END);
    });
    return tokens;
  }

  beginsRow({ text }) {
    return text === ",";
  }

  kind(text) {
    return this.labels.includes(text) ? "digit" : "aside";
  }

  where(token) {
    if (token.work) return token.text === "=" ? "" : `list ${token.work.inserted}`;
    if (!token.operand) return "";
    return token.place > 0 ? `${this.labels[token.operand - 1]}, ${placeName(token.place)}` : "name";
  }

  /**
   * Every pair of a last token and the token that it points to; null if it points to none.
   *
   * While a number is inserted, the newest of all is not in the list yet.
   */
  *neighbourhoods() {
    const [first] = this.labels, newest = this.labels.at(-1), listed = this.labels.slice(0, -1);
    yield this.neighbourhood(first, [0, this.index("="), 0], [["", "=", 0, 1, EVERYWHERE]], ["0"]);
    for (const last of [",", ...listed]) {
      for (const digit of [...DIGITS, null]) {
        // A first digit 0 is the number 0. All before it are 0, too, and have earlier labels.
        if (last !== listed.at(-1) || digit !== "0") yield this.case(last, digit, digit ?? "0");
      }
    }
    for (const last of DIGITS) {
      for (const digit of DIGITS) yield this.case(last, digit, last < digit ? "<" : last > digit ? ">" : "~");
    }
    for (const digit of DIGITS) {
      yield this.case("~", digit, digit);
      if (digit !== "0") yield this.case(digit, null, ">"); // the first digit of the longer number
    }
    for (const label of this.labels) {
      for (const last of this.labels) if (last !== label) yield this.case(last, label, label);
      if (label !== newest) {
        yield this.case("<", label, label);
        yield this.case("~", label, label);
        yield this.case(label, ",", ",");
      }
      if (label !== first) yield this.case(">", label, label);
      yield this.case(label, "=", END);
    }
  }

  case(last, target, right) {
    const cell = [0, this.index(last), target === null ? 0 : 1 + this.index(target)];
    const parts = [["", target, 1, 2, EVERYWHERE], ["", last, 1, 2, 1]];
    return this.neighbourhood(right, cell, parts, { last, target });
  }

  index(text) {
    return this.texts.indexOf(text);
  }

  describe({ source: { last, target } }) {
    if (!last) return "nothing is written yet";
    return `the last token is “${last}”, and it points to ${target === null ? "nothing" : `“${target}”`}`;
  }

  /** A list of numbers in which a pair occurs. */
  problemWith({ source: { last, target } }) {
    const number = (text) => this.labels.indexOf(text), isDigit = (text) => DIGITS.includes(text);
    const repeat = (text, times) => Array(times).fill(text);
    const make = () => {
      if (!last) return ["0"];
      if (isDigit(last)) return target === null ? [`${last}0`, "0"] : [last, target];
      if (number(last) >= 0) return this.listAfter(number(last), target);
      if (isDigit(target)) return last === "," ? [target, "0"] : repeat(`1${target}`, 2);
      if (target === null) return ["0", "10"];
      if (last === ">") return [...repeat("1", number(target)), "0"];
      return [...repeat("0", number(target) + 1), last === "<" ? "1" : "0"];
    };
    return make().join(",");
  }

  /** Numbers for which the label number `at` of a list is followed by what `target` says. */
  listAfter(at, target) {
    const list = (usual, length, others) => Array.from({ length }, (_, i) => others[i] ?? usual);
    if (target === "," || target === "=") return [...list("0", at, {}), "1", ...(target === "," ? ["0"] : [])]; // the largest
    const other = this.labels.indexOf(target);
    if (other > at) return [...list("0", other, { [at]: "1" }), "1"];
    if (other >= 0) return [...list("9", other, {}), "1", ...list("9", at - other - 1, {}), "0"]; // inserted before the other
    // The next number of the list is compared with a number that comes after both.
    const after = target === "0" ? at + 1 : Number(at === 0);
    const length = Math.max(at, after) + 1;
    if (target === null) return [...list("9", length, { [at]: "0", [after]: "1" }), "10"];
    if (target === "0") return [...list("1", length, { [at]: "0", [after]: "0" }), "1"];
    return [...list("99", length, { [at]: "0", [after]: `${target}0` }), "99"];
  }
}
