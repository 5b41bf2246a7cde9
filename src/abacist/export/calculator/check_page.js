// The second part: every neighbourhood is checked, and drawn; and a weight can be damaged.

const CELL = 4, LARGE_CELL = 12; // pixels of a cell in a map, and in a map of few cells

/** Pictures of the neighbourhoods of a notation, below its name if the page has several. */
function makeMaps({ name, maps }) {
  const group = element("div", { class: "maps" }, ...(notations.length > 1 ? [element("h3", {}, name)] : []));
  $("maps").append(group);
  return maps.map((map) => makeMap(group, map));
}

/** A picture of some neighbourhoods. Each of its cells shows the worst of those that belong to it. */
function makeMap(group, { caption, axes, rows, columns, groups = [Infinity, Infinity] }) {
  const isSmall = rows * columns < 400, size = isSmall ? LARGE_CELL : CELL;
  const offset = (number, group) => number * size + 2 * Math.floor(number / group);
  const at = ([row, column]) => [offset(column, groups[1]), offset(row, groups[0])];
  const [width, height] = at([rows - 1, columns - 1]).map((begin) => begin + size);
  const canvas = element("canvas", { width, height, role: "img", "aria-label": [caption, ...(axes ? [`Down: ${axes[0]}. Across: ${axes[1]}.`] : [])].join(" ") });
  const isWide = width > 2 * height;
  const figure = element("figure", { class: isSmall ? "small" : isWide ? "wide" : null, "--width": `${width}px` }, element("figcaption", {}, caption, ...(axes ? [element("p", { class: "axes" }, `↓ ${axes[0]}`, element("br"), `→ ${axes[1]}`)] : [])), canvas);
  group.append(figure);
  return { canvas, context: canvas.getContext("2d"), at, size, isSmall, cells: new Map() };
}

const notations = notation.notations;
const maps = new Map(notations.map((one) => [one, makeMaps(one)]));
const allMaps = [...maps.values()].flat();
const mapOf = ({ notation, cell }) => maps.get(notation)[cell[0]];

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
  const { context, at, size, isSmall } = mapOf(neighbourhood);
  const [x, y] = at(neighbourhood.cell.slice(1)), side = size - (isSmall ? 1 : 0.6);
  context.fillStyle = colourOf(outcome);
  // A wrong one must not be overlooked.
  if (outcome.isRight || isSmall) context.fillRect(x, y, side, side);
  else context.fillRect(x - 1.5, y - 1.5, side + 3, side + 3);
}

function redraw() {
  readColours();
  for (const { canvas, context, cells } of allMaps) {
    context.clearRect(0, 0, canvas.width, canvas.height);
    const all = [...cells.values()];
    for (const right of [true, false]) {
      for (const { neighbourhood, outcome } of all) if (outcome.isRight === right) drawCase(neighbourhood, outcome);
    }
  }
}

const keyIn = ([, row, column]) => `${row} ${column}`;
let running = 0; // number of the newest check; earlier ones end themselves
let listed = null; // every neighbourhood, once a check has listed them; they do not depend on the weights

/** Return a function that calls `onPause` and lets the browser draw whenever 50 ms have passed since it last did so. */
function pauses(onPause) {
  let breathed = performance.now();
  return async () => {
    if (performance.now() - breathed > 50) {
      onPause();
      await breathe();
      breathed = performance.now();
    }
  };
}

async function checkHere() {
  const own = ++running, checked = model, begin = performance.now();
  for (const { cells } of allMaps) cells.clear();
  redraw();
  $("pictures").hidden = false;
  $("verdict").hidden = true;
  $("start").textContent = listed ? "Checking …" : "Listing …";
  let last = null;
  const onCase = (neighbourhood, outcome, result) => {
    const { cells } = mapOf(neighbourhood), key = keyIn(neighbourhood.cell);
    last = result;
    if (cells.get(key)?.outcome.margin <= outcome.margin) return;
    cells.set(key, { neighbourhood, outcome });
    drawCase(neighbourhood, outcome);
  };
  const breather = pauses(() => last && showTally(last, begin));
  const pause = async () => {
    await breather();
    return own !== running;
  };
  let result;
  try {
    const list = listed ?? (await listNeighbourhoods(checked, notations, pause));
    if (list === null) return;
    listed = list;
    $("start").textContent = "Checking …";
    result = await checkEverything(checked, notations, listed, onCase, pause);
  } catch (failure) {
    return showFailure(failure);
  }
  if (result === null) return;
  redraw();
  showTally(result, begin);
  showVerdict(result);
}

function showTally(result, begin) {
  $("progress").value = result.neighbourhoods / listed.size;
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
      element("p", {}, `In all ${count(result.neighbourhoods)} neighbourhoods the right token has the largest logit, by at least ${decimals(result.smallestMargin, 2)}. ${notation.conclusion}`),
    );
    return;
  }
  const [first] = result.firstWrong;
  verdict.replaceChildren(
    element("strong", {}, `Refused: ${count(result.wrong)} of ${count(result.neighbourhoods)} neighbourhoods are wrong.`),
    element("p", {}, `The first one: ${first.notation.describe(first)}. The model writes ${tokenIn(first, first.choice)} instead of ${tokenIn(first, first.right)}.`),
    ...counterexample(result.firstWrong),
  );
}

const tokenIn = ({ notation }, text) => notation.named(text.replace(END, "the end"));

/** A problem that goes wrong because of one of these neighbourhoods, in a paragraph. */
function counterexample(wrong) {
  for (const neighbourhood of wrong) {
    const { notation } = neighbourhood, text = notation.problemWith(neighbourhood), problem = notation.parse(text);
    const { steps } = model.write(problem);
    const answer = notation.read(problem, steps.map((step) => step.text)), right = notation.rightAnswer(problem);
    if (answer === right) continue; // the work is wrong, but not the answer
    const button = element("button", { type: "button" }, "Watch it fail");
    button.addEventListener("click", () => show(text));
    return [element("p", {}, "A problem that goes wrong because of it: ", element("b", {}, `${notation.asText(problem)}`, answer === null ? unreadable(notation, steps) : minus(answer)), `, and not ${minus(right)}. `, button)];
  }
  return [element("p", {}, "In the problems tried, only the work is wrong, and the answer right in spite of it.")];
}

function showFailure(failure) {
  $("start").textContent = "Check it again";
  $("verdict").hidden = false;
  $("verdict").className = "verdict is-bad";
  $("verdict").replaceChildren(element("strong", {}, "The check itself failed."), element("p", {}, failure.message));
}

/** Show a problem in part 1, and in it the token that follows from a neighbourhood, if one is given. */
function show(text, neighbourhood = null) {
  $("problem").value = text;
  $("calculate").scrollIntoView();
  calculate(text, true, neighbourhood && model.keyOf(neighbourhood.line));
}

/** The worst neighbourhood of the cell under the pointer, if it has been checked. */
function caseAt({ canvas, at, size, cells }, event) {
  const box = canvas.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * canvas.width;
  const y = ((event.clientY - box.top) / box.height) * canvas.height;
  const index = (end, axis) => {
    let number = 0;
    while (at([number + 1, number + 1])[axis] <= end) number++;
    return number;
  };
  return cells.get(`${index(y, 1)} ${index(x, 0)}`);
}

for (const map of allMaps) {
  map.canvas.addEventListener("pointermove", (event) => {
    const pointed = caseAt(map, event);
    if (!pointed) return;
    const { neighbourhood, outcome } = pointed, { notation } = neighbourhood;
    const verdict = outcome.isRight ? "which is right" : `instead of ${tokenIn(neighbourhood, neighbourhood.right)}`;
    const sentence = notation.describe(neighbourhood);
    $("pointed").textContent = `${sentence[0].toUpperCase()}${sentence.slice(1)}. The model writes ${tokenIn(neighbourhood, outcome.choice)}, ${verdict}; margin ${decimals(outcome.margin, 2)}. Click to see it in ${minus(notation.problemWith(neighbourhood))}.`;
  });
  map.canvas.addEventListener("click", (event) => {
    const pointed = caseAt(map, event);
    if (pointed) show(pointed.neighbourhood.notation.problemWith(pointed.neighbourhood), pointed.neighbourhood);
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
  $("index").value = index + 1;
  const size = Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length) || 1;
  const change = ($("damage").valueAsNumber / 100) * 3 * size;
  $("change").textContent = decimals(change, 3);
  $("weight").textContent = `Number ${index + 1} of ${count(numbers.length)} is ${decimals(numbers[index], 4)}${change ? `, and now ${decimals(numbers[index] + change, 4)}` : ""}.`;
  const wasDamaged = model !== intact;
  model = change ? intact.withWeight(name, index, numbers[index] + change) : intact;
  $("damaged").hidden = !change;
  $("unchanged").hidden = !change;
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

$("check-why").textContent = `${notation.why} There are finitely many such neighbourhoods. Press the button: your browser lists them all, runs the model on each, and compares its choice with the rule that children learn.`;
$("legend").textContent = `margin of the right token, from 0 to ${LARGEST_MARGIN} logits and more; a wrong one is red.`;
readColours();
damage();
