// The proof, carried out: the model is run on every neighbourhood, once.

const LEAST_MARGIN = 1e-6; // far above the rounding of float64 in sums of a few hundred terms
const NUM_WHOLE_PROBLEMS = 100; // of each notation
const MOST_WRONG_KEPT = 10;

/**
 * List every neighbourhood: a map from the model's input for it to its number, in the order of first
 * appearance. Returns null if the check was stopped.
 */
async function listNeighbourhoods(model, notations, pause = breathe) {
  const listed = new Map(), rights = [];
  let cases = 0;
  for (const notation of notations) {
    for (const { line, right } of notation.neighbourhoods()) {
      const key = model.keyOf(line), number = listed.get(key);
      if (number === undefined) {
        listed.set(key, rights.length);
        rights.push(right);
      } else if (rights[number] !== right) {
        throw new Error(`The same neighbourhood is listed with ${rights[number]} and with ${right} after it.`);
      }
      if (++cases % 1024 === 0 && (await pause())) return null;
    }
  }
  return listed;
}

/**
 * Check a model on every neighbourhood, then let it write whole problems.
 *
 * listed: what `listNeighbourhoods` returns for the same notations.
 * onCase: called with each neighbourhood, the model's choice and its margin: the logit of the right
 *   token minus the largest other one.
 * pause: called often; awaited, so that the page stays alive. A true result ends the check.
 * Returns null if the check was stopped.
 */
async function checkEverything(model, notations, listed, onCase = () => {}, pause = breathe) {
  const result = { certified: false, neighbourhoods: 0, wrong: 0, smallestMargin: Infinity, firstWrong: [] };
  for (const notation of notations) {
    for (const neighbourhood of notation.neighbourhoods()) {
      const { line, right } = neighbourhood;
      if (listed.get(model.keyOf(line)) !== result.neighbourhoods) continue; // it appeared before
      const { logits, seen } = model.run(line);
      if (seen.length !== line.length) throw new Error("A token is listed as seen and is not.");
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
        if (result.firstWrong.length < MOST_WRONG_KEPT) result.firstWrong.push({ ...neighbourhood, choice });
      }
      onCase(neighbourhood, { choice, margin, isRight }, result);
      if (result.neighbourhoods % 16 === 0 && (await pause())) return null;
    }
  }
  if (result.neighbourhoods !== listed.size) throw new Error("Not every neighbourhood of the list was checked.");
  // Whole problems test the list itself: whatever they meet must be on it.
  const random = generator(1);
  for (const notation of result.wrong ? [] : notations) {
    for (let i = 0; i < NUM_WHOLE_PROBLEMS; i++) {
      const text = notation.randomProblem(random), problem = notation.parse(text);
      const { line, steps } = model.write(problem);
      const begin = line.length - steps.length;
      const isListed = steps.every(({ seen }, k) => seen.at(-1) === begin + k - 1 && listed.has(model.keyOf(seen.map((s) => line[s]))));
      if (!isListed) throw new Error(`In ${text} a neighbourhood occurs that is not on the list.`);
      if (notation.read(problem, steps.map((step) => step.text)) !== notation.rightAnswer(problem)) {
        throw new Error(`${text} is wrong although every neighbourhood is right.`);
      }
      if (await pause()) return null;
    }
  }
  result.certified = result.wrong === 0;
  return result;
}

/** Let the browser draw and react. */
function breathe() {
  return new Promise((resolve) => setTimeout(resolve));
}
