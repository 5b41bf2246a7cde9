// The page: its three parts, and `window.abacist` for scripts.

const data = JSON.parse(document.getElementById("data").textContent);
const file = Uint8Array.from(atob(data.weights), (character) => character.charCodeAt(0));
const weightsHash = sha256(file);
const intact = new Transformer(data.settings, data.vocabulary, readTensors(file));
const notation = new Columns(data.operation);
let model = intact; // or one with a damaged weight

const $ = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");
const percent = (share) => (share > 0.9999 ? "more than 99.99 %" : `${(100 * share).toFixed(share > 0.999 ? 2 : 1)} %`);
const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
const signText = notation.sign > 0 ? "+" : "−";
const verb = notation.sign > 0 ? "adds" : "subtracts";

/** An element with attributes and children; texts are escaped by the browser. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// 1. Try it ------------------------------------------------------------------------------------

let shown = null; // the problem, its line and steps, and the elements of its tokens

/** Digits in groups of three, which a narrow screen can break. */
function grouped(number) {
  return number.replace(/\B(?=(\d{3})+$)/g, "\u2009").replace("-", "−");
}

function calculate(text, focuses = false) {
  let problem;
  try {
    problem = notation.parse(text);
  } catch (mistake) {
    $("mistake").textContent = mistake.message;
    return;
  }
  $("mistake").textContent = "";
  const { line, steps } = model.write(notation, notation.prompt(problem), notation.mostTokens(problem));
  shown = { problem, line, steps, tokens: [], begin: line.length - steps.length, timer: shown?.timer };
  $("written").hidden = false;
  drawSheet();
  reveal(focuses);
}

/** The two numbers below each other, and room for what the model writes. */
function drawSheet() {
  const { problem, line, steps, begin } = shown;
  const columns = Math.max(problem.a.length, problem.b.length, steps.length - 1) + 2;
  const sheet = $("sheet");
  sheet.replaceChildren(element("div", { class: "bar", "--row": 3, "aria-hidden": "true" }));
  sheet.style.setProperty("--columns", columns);
  sheet.classList.toggle("long", columns > 14);
  sheet.firstChild.style.gridRow = 3;
  line.forEach((token, i) => {
    if (i >= begin || !/^[0-9]$|^[+-]$/.test(token.text)) return;
    const isOperator = token.place === NOWHERE;
    const cell = element("span", { class: isOperator ? "token operator" : "token" }, isOperator ? signText : token.text);
    cell.style.gridArea = isOperator ? "2 / 1" : `${token.row} / ${columns + 1 - token.place}`;
    shown.tokens[i] = cell;
    sheet.append(cell);
  });
  steps.forEach((step, k) => {
    const isEnd = step.text === END;
    const label = `${isEnd ? "end" : step.text}, ${percent(step.share)} certain`;
    const button = element("button", {
      type: "button", class: step.share < 0.9 ? "token unsure" : "token", tabindex: k ? -1 : 0, "aria-label": label,
      "--sure": step.share, hidden: true,
    }, isEnd ? "■" : step.text.replace("-", "−"));
    if (isEnd) button.style.fontSize = "45%";
    button.style.gridArea = `4 / ${columns - k}`;
    button.addEventListener("pointerenter", () => look(k));
    button.addEventListener("focus", () => look(k));
    button.addEventListener("click", () => look(k));
    shown.tokens[begin + k] = button;
    sheet.append(button);
  });
}

/** Show the digits one after the other, as a person writes them. */
function reveal(focuses) {
  clearTimeout(shown.timer);
  const { steps, begin, tokens } = shown;
  const wait = isStill ? 0 : Math.min(260, 3000 / steps.length);
  const scroll = $("sheet-scroll");
  $("answer").textContent = "";
  let k = 0;
  const write = () => {
    const upTo = wait ? k + 1 : steps.length;
    for (; k < upTo; k++) tokens[begin + k].hidden = false;
    const pen = tokens[begin + k - 1];
    const left = pen.offsetLeft - scroll.offsetLeft - scroll.clientWidth / 3;
    scroll.scrollLeft = k < 4 ? scroll.scrollWidth : Math.min(scroll.scrollLeft, left);
    look(k - 1);
    if (k < steps.length) shown.timer = setTimeout(write, wait);
    else finish(focuses);
  };
  write();
}

function finish(focuses) {
  const { problem, steps, begin, tokens } = shown;
  const answer = notation.read(problem, steps.map((step) => step.text));
  const right = notation.rightAnswer(problem);
  const verdict = answer === right ? element("span", { class: "good" }, " ✓ right") : element("span", { class: "bad" }, ` ✗ wrong: it is ${grouped(right)}`);
  $("answer").replaceChildren(
    `${grouped(problem.a)} ${signText} ${grouped(problem.b)} = `,
    element("span", { class: "value" }, answer === null ? "no number" : grouped(answer)),
    verdict,
  );
  const first = Math.max(0, steps.findIndex((step) => step.share < 0.9));
  look(first);
  if (focuses) tokens[begin + first].focus();
}

/** What a token of the line is, in a word or two. */
function nameOf(token) {
  if (token.text === START) return ["start", ""];
  if (token.text === "=") return ["=", ""];
  if (token.place === NOWHERE) return [signText, ""];
  const place = ["units", "tens", "hundreds"][token.place - 1] ?? `10${superscript(token.place - 1)}`;
  return [token.text.replace("-", "−"), `${["first", "second", "answer"][token.row - 1]}, ${place}`];
}

function superscript(number) {
  return [...String(number)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
}

/** Show where the heads looked before digit `k` was written. */
function look(k) {
  const { line, steps, tokens, begin } = shown;
  const step = steps[k];
  tokens.forEach((token) => token.classList.remove("pen"));
  tokens.forEach((token) => token.style.removeProperty("--share"));
  tokens[begin + k].classList.add("pen");
  step.seen.forEach((index, s) => {
    const strongest = Math.max(...step.pattern.map((shares) => shares[s]));
    tokens[index]?.style.setProperty("--share", strongest);
  });
  const order = [...step.logits.keys()].sort((i, j) => step.logits[j] - step.logits[i]);
  const isEnd = step.text === END;
  const names = step.seen.map((index) => nameOf(line[index]));
  const head = element("tr", {}, element("td", { "--share": 0 }),
    ...names.map(([text, where]) => element("th", { scope: "col" }, element("b", {}, text), where)));
  const rows = step.pattern.map((shares, number) => element("tr", {},
    element("th", { scope: "row" }, `head ${number + 1}`),
    ...shares.map((share) => element("td", { "--share": share }, share < 0.005 ? "·" : String(Math.round(100 * share))))));
  const said = isEnd ? "Here the model stopped" : `Here the model wrote ${step.text.replace("-", "−")}`;
  const runnerUp = data.vocabulary[order[1]].replace(END, "stopping").replace("-", "−");
  const margin = step.logits[order[0]] - step.logits[order[1]];
  $("looked").replaceChildren(
    element("p", {}, element("b", {}, said), `, ${percent(step.share)} certain, ${margin.toFixed(1)} logits ahead of ${runnerUp}. It saw only these tokens, and its heads attended to them in these shares (%):`),
    element("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Attention of each head" }, element("table", { class: "heads" }, element("thead", {}, head), element("tbody", {}, ...rows))),
  );
}

/** Arrow keys walk along the written digits. */
$("sheet").addEventListener("keydown", (event) => {
  const way = { ArrowLeft: 1, ArrowRight: -1, Home: -Infinity, End: Infinity }[event.key];
  const buttons = [...$("sheet").querySelectorAll("button")];
  const from = buttons.indexOf(event.target);
  if (!way || from < 0) return;
  event.preventDefault();
  buttons[from].tabIndex = -1;
  const to = buttons[Math.min(Math.max(from + way, 0), buttons.length - 1)];
  to.tabIndex = 0;
  to.focus();
});

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  calculate($("problem").value);
});

const suggestions = {
  "a long carry": () => (notation.sign > 0 ? "99999999999999+1" : "10000000000000-1"),
  "two random numbers": () => randomProblem(1, 12),
  "60 digits each": () => randomProblem(60, 60),
  ...(notation.sign < 0 && { "below zero": () => "45-123" }),
};

function randomProblem(fewest, most) {
  const number = () => randomNumber(Math.random, most, fewest);
  return number() + notation.operation + number();
}

for (const [name, make] of Object.entries(suggestions)) {
  const button = element("button", { type: "button" }, name);
  button.addEventListener("click", () => {
    $("problem").value = make();
    calculate($("problem").value);
  });
  $("suggestions").append(button);
}

// 2. Check the proof ---------------------------------------------------------------------------

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
  $("margin").textContent = result.smallestMargin.toFixed(2);
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
      element("p", {}, `In all ${count(result.neighbourhoods)} neighbourhoods the right token has the largest logit, by at least ${result.smallestMargin.toFixed(2)}. Whatever two numbers you type, their digits are among these, one column after the other.`),
    );
    return;
  }
  const problem = notation.problemWith(result.firstWrong);
  const { steps } = model.write(notation, notation.prompt(problem), notation.mostTokens(problem));
  const answer = notation.read(problem, steps.map((step) => step.text)) ?? "no number";
  const text = `${problem.a}${notation.operation}${problem.b}`;
  const button = element("button", { type: "button" }, "Watch it fail");
  button.addEventListener("click", () => show(text));
  const token = (id) => id.replace(END, "the end").replace("-", "−");
  verdict.replaceChildren(
    element("strong", {}, `Refused: ${count(result.wrong)} of ${count(result.neighbourhoods)} neighbourhoods are wrong.`),
    element("p", {}, `The first one: ${notation.describe(result.firstWrong)}. The model writes ${token(result.firstWrong.choice)} instead of ${token(result.firstWrong.right)}.`),
    element("p", {}, "A problem that goes wrong because of it: ", element("b", {}, `${problem.a} ${signText} ${problem.b} = ${answer.replace("-", "−")}`), `, and not ${notation.rightAnswer(problem).replace("-", "−")}. `, button),
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
    const what = (text) => text.replace(END, "the end").replace("-", "−");
    const verdict = outcome.isRight ? "which is right" : `instead of ${what(neighbourhood.right)}`;
    const sentence = notation.describe(neighbourhood);
    $("pointed").textContent = `${sentence[0].toUpperCase()}${sentence.slice(1)}. The model writes ${what(outcome.choice)}, ${verdict}; margin ${outcome.margin.toFixed(2)}. Click to see it in ${a} ${signText} ${b}.`;
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
  $("change").textContent = change.toFixed(3).replace("-", "−");
  $("weight").textContent = `Number ${index + 1} of ${count(numbers.length)} is ${numbers[index].toFixed(4)}${change ? `, and now ${(numbers[index] + change).toFixed(4)}` : ""}.`.replaceAll("-", "−");
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

// 3. What is proved ----------------------------------------------------------------------------

const NUM_NEIGHBOURHOODS = [...notation.neighbourhoods()].length;

function describe() {
  const { certificate, facts } = data;
  const numbers = count(facts.parameters);
  const lead = [
    `It is a transformer, the kind of network that powers chatbots, with ${numbers} numbers inside. It learned from examples of at most ${facts.digits} digits, and nobody programmed it. `,
  ];
  lead.push(certificate
    ? element("strong", {}, `It ${verb} numbers of every length without a mistake, and this page proves it in front of you.`)
    : element("strong", {}, "It has no certificate. The check below shows whether it could have one."));
  $("lead").replaceChildren(...lead);
  $("check-why").textContent = `Each new digit depends on at most six tokens: the digits of this column and the next, and the digit just written. There are ${count(NUM_NEIGHBOURHOODS)} such neighbourhoods. Your browser now lists them all, runs the model on each, and compares its choice with the rule that children learn.`;
  $("legend").textContent = `margin of the right token, from 0 to ${LARGEST_MARGIN} logits and more; a wrong one is red.`;
  const sentences = [
    "The model writes an answer one token after the other, units first, and always takes the token with the largest logit.",
    "A token attends only to the start token and to its own column and the next one, and it learns only how far apart columns are, not where they stand; so the next token depends on at most six tokens, wherever in the numbers they stand.",
    `Those tokens can hold ${count(NUM_NEIGHBOURHOODS)} different contents, and in each the right token is known.`,
    "If the model is right in all of them, the units are right, so the tens are right, and so on: by induction every token is right up to the last.",
    `Therefore the model ${verb} all pairs of whole numbers, of every length.`,
  ];
  $("sentences").replaceChildren(...sentences.map((sentence) => element("li", {}, sentence)));
  $("certified").replaceChildren(...(certificate
    ? [element("b", { class: "good" }, "Certified. "), `abacist prove checked ${count(certificate.neighbourhoods)} neighbourhoods of these weights, found ${certificate.wrong} wrong, and a smallest margin of ${certificate.smallestMargin.toFixed(2)} logits${certificate.roundingIsProved ? ", and proved that rounding in float32 cannot overturn any" : ""}. The check above repeats this in float64 with a program of its own.`]
    : [element("b", { class: "bad" }, "Not certified. "), data.objection]));
  const rows = {
    "SHA-256 of the weights": element("code", {}, weightsHash),
    "in the certificate": certificate ? element("span", { class: certificate.weightsHash === weightsHash ? "good" : "bad" }, certificate.weightsHash === weightsHash ? "✓ the same; computed here from the weights in this file" : `✗ another one: ${certificate.weightsHash}`) : "–",
    recipe: `${facts.recipe}, seed ${facts.seed}, step ${count(facts.step)}`,
    parameters: numbers,
    "trained on": `${facts.problems} of at most ${facts.digits} digits`,
  };
  $("facts").replaceChildren(...Object.entries(rows).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

describe();
readColours();
damage();
$("problem").value = notation.sign > 0 ? "95846+4237" : "10483-4237";
calculate($("problem").value);

window.abacist = {
  weightsHash,
  /** The model's answer to a problem such as `12+34`, as text; null if what it writes is no number. */
  async solve(text) {
    const problem = notation.parse(text);
    const { steps } = intact.write(notation, notation.prompt(problem), notation.mostTokens(problem));
    return notation.read(problem, steps.map((step) => step.text));
  },
  /** Check every neighbourhood of the weights as they were exported. */
  async check() {
    let breathed = performance.now();
    const pause = async () => {
      if (performance.now() - breathed < 50) return false;
      await breathe();
      breathed = performance.now();
      return false;
    };
    const { certified, neighbourhoods, wrong, smallestMargin } = await checkEverything(intact, notation, undefined, pause);
    return { certified, neighbourhoods, wrong, smallestMargin };
  },
};
