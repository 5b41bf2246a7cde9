// The proof, carried out: the model is run on every neighbourhood, once.

const LEAST_MARGIN = 1e-6; // far above the rounding of float64 in sums of a few hundred terms
const NUM_WHOLE_PROBLEMS = 100;

/** Coordinates relative to the last token, which are all that the model is given. */
function keyOf(tokens) {
  const last = tokens.at(-1);
  const relative = (q, k) => (q >= 0 && k >= 0 ? k - q : "·");
  return tokens.map((t) => `${t.text}${relative(last.place, t.place)}${relative(last.row, t.row)}`).join(" ");
}

/**
 * Check a model on every neighbourhood, then let it write whole problems.
 *
 * onCase: called with each neighbourhood, the model's choice and its margin: the logit of the right
 *   token minus the largest other one.
 * pause: called often; awaited, so that the page stays alive. A true result ends the check.
 * Returns null if it was ended.
 */
async function checkEverything(model, notation, onCase = () => {}, pause = () => breathe()) {
  const listed = new Set();
  const result = { certified: false, neighbourhoods: 0, wrong: 0, smallestMargin: Infinity, firstWrong: null };
  for (const neighbourhood of notation.neighbourhoods()) {
    const { line, right } = neighbourhood;
    const { logits, seen } = model.run(line);
    if (seen.length !== line.length) throw new Error("A token is listed as seen and is not.");
    listed.add(keyOf(line));
    const rightId = model.ids.get(right);
    const rightLogit = logits[rightId];
    const choice = model.vocabulary[argmax(logits)];
    logits[rightId] = -Infinity;
    const margin = rightLogit - Math.max(...logits);
    const isRight = margin > LEAST_MARGIN;
    result.neighbourhoods++;
    result.smallestMargin = Math.min(result.smallestMargin, Number.isNaN(margin) ? -Infinity : margin);
    if (!isRight) {
      result.wrong++;
      result.firstWrong ??= { ...neighbourhood, choice };
    }
    onCase(neighbourhood, { choice, margin, isRight }, result);
    if (result.neighbourhoods % 16 === 0 && (await pause())) return null;
  }
  if (listed.size !== result.neighbourhoods) throw new Error("A neighbourhood is listed twice.");
  // Whole problems test the list itself: whatever they meet must be on it.
  const random = generator(1);
  for (let i = 0; i < NUM_WHOLE_PROBLEMS && result.wrong === 0; i++) {
    const problem = { a: randomNumber(random, 30), b: randomNumber(random, 30) };
    const { line, steps } = model.write(notation, notation.prompt(problem), notation.mostTokens(problem));
    const begin = line.length - steps.length;
    const isListed = steps.every(({ seen }, k) => seen.at(-1) === begin + k - 1 && listed.has(keyOf(seen.map((s) => line[s]))));
    if (!isListed) throw new Error("A neighbourhood occurred that is not on the list.");
    if (notation.read(problem, steps.map((step) => step.text)) !== notation.rightAnswer(problem)) {
      throw new Error(`${problem.a}${notation.operation}${problem.b} is wrong although every neighbourhood is right.`);
    }
    if (await pause()) return null;
  }
  result.certified = result.wrong === 0;
  return result;
}

/** Let the browser draw and react. */
function breathe() {
  return new Promise((resolve) => setTimeout(resolve));
}
