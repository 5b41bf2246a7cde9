// The second part: every neighbourhood is checked, and drawn; and a weight can be damaged.

const CELL = 4; // pixels of a neighbourhood in a map
const NUM_OPERANDS = 111; // 10 · 10 that go on, 10 that end, and one that has ended
const offset = (number) => number * CELL + 2 * Math.floor(number / 10);

/** Number of an operand's two digits among all that there can be, as the maps order them. */
function operandNumber([digit, next]) {
  if (digit === null) return 110;
  return next === null ? 100 + digit : 10 * digit + next;
}

function makeMap(name, size, isSmall) {
  const canvas = element("canvas", { width: size, height: size, role: "img", "aria-label": name });
  const caption = element("figcaption", {}, name);
  $("maps").append(element("figure", { class: isSmall ? "small" : null }, ...(isSmall ? [canvas, caption] : [caption, canvas])));
  return { canvas, context: canvas.getContext("2d"), cases: new Map() };
}

const side = offset(NUM_OPERANDS) + 2;
const maps = {
  0: makeMap(`No ${notation.carryName} came in. Each row is a pair of digits of the first number (this column and the next), each column one of the second.`, side),
  1: makeMap(`A ${notation.carryName} came in. In both maps the last rows and columns are numbers that end here or have ended.`, side),
  null: makeMap("The first digit: units of the first number down, of the second across.", 10 * 12, true),
};

/** Where a neighbourhood is drawn, [x, y, size]. */
function cellOf({ carry, a, b }) {
  if (carry === null) return [12 * b[0], 12 * a[0], 11];
  return [offset(operandNumber(b)), offset(operandNumber(a)), CELL - 0.6];
}

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/g).map((pair) => parseInt(pair, 16));
  colours.low = rgb("--low");
  colours.high = rgb("--high");
  colours.bad = style.getPropertyValue("--bad");
}

const LARGEST_MARGIN = 25; // margins above it have one colour
function colourOf({ margin, isRight }) {
  if (!isRight) return colours.bad;
  const t = Math.min(margin / LARGEST_MARGIN, 1);
  return `rgb(${colours.low.map((from, i) => Math.round(from + t * (colours.high[i] - from))).join(" ")})`;
}

function drawCase(neighbourhood, outcome) {
  const { context } = maps[neighbourhood.carry];
  const [x, y, size] = cellOf(neighbourhood);
  context.fillStyle = colourOf(outcome);
  // A wrong one must not be overlooked.
  if (outcome.isRight || neighbourhood.carry === null) context.fillRect(x, y, size, size);
  else context.fillRect(x - 1.5, y - 1.5, size + 3, size + 3);
}

function redraw() {
  readColours();
  for (const { canvas, context, cases } of Object.values(maps)) {
    context.clearRect(0, 0, canvas.width, canvas.height);
    const all = [...cases.values()];
    for (const right of [true, false]) {
      for (const { neighbourhood, outcome } of all) if (outcome.isRight === right) drawCase(neighbourhood, outcome);
    }
  }
}

const keyIn = ({ carry, a, b }) => (carry === null ? `${a[0]} ${b[0]}` : `${operandNumber(a)} ${operandNumber(b)}`);
let running = 0; // number of the newest check; earlier ones end themselves

async function checkHere() {
  const own = ++running, checked = model, begin = performance.now();
  for (const map of Object.values(maps)) map.cases.clear();
  redraw();
  $("verdict").hidden = true;
  $("start").textContent = "Checking …";
  let breathed = performance.now(), last = null;
  const onCase = (neighbourhood, outcome, result) => {
    maps[neighbourhood.carry].cases.set(keyIn(neighbourhood), { neighbourhood, outcome });
    drawCase(neighbourhood, outcome);
    last = result;
  };
  const pause = async () => {
    if (performance.now() - breathed > 50) {
      showTally(last, begin);
      await breathe();
      breathed = performance.now();
    }
    return own !== running;
  };
  let result;
  try {
    result = await checkEverything(checked, notation, onCase, pause);
  } catch (failure) {
    return showFailure(failure);
  }
  if (result === null) return;
  redraw();
  showTally(result, begin);
  showVerdict(result);
}

function showTally(result, begin) {
  $("progress").value = result.neighbourhoods / NUM_NEIGHBOURHOODS;
  $("count").textContent = count(result.neighbourhoods);
  $("wrong").textContent = count(result.wrong);
  $("wrong").className = result.wrong ? "bad" : "good";
  $("margin").textContent = decimals(result.smallestMargin, 2);
  $("seconds").textContent = ((performance.now() - begin) / 1000).toFixed(1);
}

function showVerdict(result) {
  const verdict = $("verdict");
  $("start").textContent = "Check it again";
  verdict.hidden = false;
  verdict.className = `verdict ${result.certified ? "is-good" : "is-bad"}`;
  if (result.certified) {
    verdict.replaceChildren(
      element("strong", {}, "Right for every length."),
      element("p", {}, `In all ${count(result.neighbourhoods)} neighbourhoods the right token has the largest logit, by at least ${decimals(result.smallestMargin, 2)}. Whatever two numbers you type, their digits are among these, one column after the other.`),
    );
    return;
  }
  const problem = notation.problemWith(result.firstWrong);
  const { steps } = model.write(notation, notation.prompt(problem), notation.mostTokens(problem));
  const answer = notation.read(problem, steps.map((step) => step.text)) ?? "no number";
  const text = `${problem.a}${notation.operation}${problem.b}`;
  const button = element("button", { type: "button" }, "Watch it fail");
  button.addEventListener("click", () => show(text));
  const token = (id) => minus(id.replace(END, "the end"));
  verdict.replaceChildren(
    element("strong", {}, `Refused: ${count(result.wrong)} of ${count(result.neighbourhoods)} neighbourhoods are wrong.`),
    element("p", {}, `The first one: ${notation.describe(result.firstWrong)}. The model writes ${token(result.firstWrong.choice)} instead of ${token(result.firstWrong.right)}.`),
    element("p", {}, "A problem that goes wrong because of it: ", element("b", {}, `${problem.a} ${notation.signText} ${problem.b} = ${minus(answer)}`), `, and not ${minus(notation.rightAnswer(problem))}. `, button),
  );
}

function showFailure(failure) {
  $("start").textContent = "Check it again";
  $("verdict").hidden = false;
  $("verdict").className = "verdict is-bad";
  $("verdict").replaceChildren(element("strong", {}, "The check itself failed."), element("p", {}, failure.message));
}

/** Show a problem in part 1. */
function show(text) {
  $("problem").value = text;
  $("calculate").scrollIntoView();
  calculate(text, true);
}

/** The neighbourhood under the pointer, if it has been checked. */
function caseAt(map, event) {
  const box = map.canvas.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * map.canvas.width;
  const y = ((event.clientY - box.top) / box.height) * map.canvas.height;
  const index = (at) => (map === maps.null ? Math.floor(at / 12) : Math.floor((at - 2 * Math.floor(at / (10 * CELL + 2))) / CELL));
  return map.cases.get(`${index(y)} ${index(x)}`);
}

for (const map of Object.values(maps)) {
  map.canvas.addEventListener("pointermove", (event) => {
    const found = caseAt(map, event);
    if (!found) return;
    const { neighbourhood, outcome } = found;
    const { a, b } = notation.problemWith(neighbourhood);
    const what = (text) => minus(text.replace(END, "the end"));
    const verdict = outcome.isRight ? "which is right" : `instead of ${what(neighbourhood.right)}`;
    const sentence = notation.describe(neighbourhood);
    $("pointed").textContent = `${sentence[0].toUpperCase()}${sentence.slice(1)}. The model writes ${what(outcome.choice)}, ${verdict}; margin ${decimals(outcome.margin, 2)}. Click to see it in ${a} ${notation.signText} ${b}.`;
  });
  map.canvas.addEventListener("click", (event) => {
    const found = caseAt(map, event);
    if (!found) return;
    const { a, b } = notation.problemWith(found.neighbourhood);
    show(`${a}${notation.operation}${b}`);
  });
}

$("start").addEventListener("click", checkHere);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// Damage: one number of one tensor is changed by up to three times the tensor's root mean square.

for (const name of Object.keys(intact.tensors)) {
  const text = name.replace("blocks.0.", "").replace(".weight", "").replaceAll("_", " ");
  $("tensor").append(element("option", { value: name }, `${text} (${intact.tensors[name].shape.join(" × ")})`));
}

$("tensor").value = intact.numbers("head.weight") ? "head.weight" : "embedding.weight";

function damage() {
  const name = $("tensor").value, { numbers } = intact.tensors[name];
  $("index").max = numbers.length;
  const index = Math.min(Math.max(Math.round($("index").valueAsNumber || 1), 1), numbers.length) - 1;
  const size = Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length) || 1;
  const change = ($("damage").valueAsNumber / 100) * 3 * size;
  $("change").textContent = decimals(change, 3);
  $("weight").textContent = `Number ${index + 1} of ${count(numbers.length)} is ${decimals(numbers[index], 4)}${change ? `, and now ${decimals(numbers[index] + change, 4)}` : ""}.`;
  const wasDamaged = model !== intact;
  model = change ? intact.withWeight(name, index, numbers[index] + change) : intact;
  $("damaged").hidden = !change;
  if (change || wasDamaged) checkHere();
}

$("damage").addEventListener("input", damage);
$("index").addEventListener("change", damage);
$("tensor").addEventListener("change", () => {
  $("index").value = 1;
  damage();
});
$("another").addEventListener("click", () => {
  const options = [...$("tensor").options];
  $("tensor").value = options[Math.floor(Math.random() * options.length)].value;
  $("index").value = 1 + Math.floor(Math.random() * intact.numbers($("tensor").value).length);
  damage();
});
$("repair").addEventListener("click", () => {
  $("damage").value = 0;
  damage();
  if (shown) calculate($("problem").value);
});

const NUM_NEIGHBOURHOODS = [...notation.neighbourhoods()].length;
$("check-why").textContent = `Each new digit depends on at most six tokens: the digits of this column and the next, and the digit just written. There are ${count(NUM_NEIGHBOURHOODS)} such neighbourhoods. Your browser now lists them all, runs the model on each, and compares its choice with the rule that children learn.`;
$("legend").textContent = `margin of the right token, from 0 to ${LARGEST_MARGIN} logits and more; a wrong one is red.`;
readColours();
damage();

const CAN_CHECK = true;

/** Check every neighbourhood of the weights as they were exported. */
async function checkExported() {
  let breathed = performance.now();
  const pause = async () => {
    if (performance.now() - breathed < 50) return false;
    await breathe();
    breathed = performance.now();
    return false;
  };
  const { certified, neighbourhoods, wrong, smallestMargin } = await checkEverything(intact, notation, undefined, pause);
  return { certified, neighbourhoods, wrong, smallestMargin };
}
