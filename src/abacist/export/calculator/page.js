// The page: what its parts share, and the first of them, in which a problem is calculated.

const $ = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");
const minus = (text) => text.replaceAll("-", "−");
const decimals = (number, places) => minus(number.toFixed(places).replace(/^-(?=[0.]+$)/, ""));
const percent = (share) => (share > 0.9999 ? "more than 99.99 %" : `${(100 * share).toFixed(share > 0.999 ? 2 : 1)} %`);

const data = JSON.parse(document.getElementById("data").textContent);
const file = Uint8Array.from(atob(data.weights), (character) => character.charCodeAt(0));
const weightsHash = sha256(file);
const intact = new Transformer(data.settings, data.vocabulary, readTensors(file));
const notation = makeNotation(data);
let model = intact; // or one with a damaged weight
const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;

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
  return minus(number.replace(/\B(?=(\d{3})+$)/g, "\u2009"));
}

/** Calculate a problem. The token whose neighbourhood has the key `selected` is selected at the end. */
function calculate(text, focuses = false, selected = null) {
  let problem;
  try {
    problem = notation.parse(text);
  } catch (mistake) {
    $("mistake").textContent = mistake.message;
    clearTimeout(shown?.timer);
    shown = null;
    $("written").hidden = true;
    return;
  }
  $("mistake").textContent = "";
  const { line, steps } = model.write(problem);
  const rights = problem.notation.rightTokens(problem);
  shown = { problem, line, steps, rights, tokens: [], begin: line.length - steps.length, timer: shown?.timer, selected };
  $("written").hidden = false;
  (problem.notation.isWork ? drawWork : drawColumns)($("sheet"));
  reveal(focuses);
}

/** Whether token `k` of the answer is another one than in a right line. */
const isWrong = (k) => shown.steps[k].text !== shown.rights[k];
const isUnsure = ({ share }) => share < 0.9;

/** What stands in a right line instead of a wrong token `k`. */
function rightInstead(k) {
  const text = shown.rights[k];
  return text === undefined ? "nothing more" : text === END ? "to stop" : shown.problem.notation.shown(text);
}

/** A button for token `k` of the answer, which shows itself later and tells what the heads looked at. */
function tokenButton(k, kind = "") {
  const { steps, tokens, begin } = shown, { notation } = shown.problem, step = steps[k], isEnd = step.text === END;
  const label = `${isEnd ? "end" : notation.shown(step.text)}, ${percent(step.share)} certain${isWrong(k) ? `, wrong, right is ${rightInstead(k)}` : ""}`;
  const button = element("button", {
    type: "button", class: `token ${kind} ${isUnsure(step) ? "unsure" : ""} ${isWrong(k) ? "wrong" : ""}`, tabindex: k ? -1 : 0, "aria-label": label,
    "--sure": step.share, hidden: true,
  }, isEnd ? "■" : notation.shown(step.text));
  if (isEnd) button.classList.add("end");
  for (const event of ["pointerenter", "focus", "click"]) button.addEventListener(event, () => look(k));
  tokens[begin + k] = button;
  return button;
}

/** Show the digits one after the other, as a person writes them. */
function reveal(focuses) {
  clearTimeout(shown.timer);
  const { steps, begin, tokens } = shown, { notation } = shown.problem;
  const wait = isStill ? 0 : Math.max(16, Math.min(260, 3000 / steps.length));
  const stride = Math.ceil((steps.length * wait) / 3000); // it takes three seconds at most, and a bit
  const scroll = $("sheet-scroll");
  $("answer").textContent = "";
  let k = 0;
  const write = () => {
    const upTo = wait ? Math.min(k + stride, steps.length) : steps.length;
    for (; k < upTo; k++) tokens[begin + k].hidden = false;
    const pen = tokens[begin + k - 1];
    const left = pen.offsetLeft - scroll.offsetLeft - scroll.clientWidth / 3;
    if (notation.isMirrored) scroll.scrollLeft = k < 4 ? scroll.scrollWidth : Math.min(scroll.scrollLeft, left);
    look(k - 1);
    if (k < steps.length) shown.timer = setTimeout(write, wait);
    else finish(focuses);
  };
  write();
}

/** What the model wrote if that is no answer: a line that has no end, or one that is not of the right form. */
function unreadable({ isWork, isMirrored }, steps) {
  if (steps.at(-1).text === END) return "nothing that can be read";
  if (isWork) return "work without an end";
  const texts = steps.map((step) => minus(step.text));
  return isMirrored ? `…${texts.reverse().join("")}, without an end` : `${texts.join("")}…, without an end`;
}

function finish(focuses) {
  const { problem, line, steps, begin, tokens, selected } = shown, { notation } = problem;
  const answer = notation.read(problem, steps.map((step) => step.text));
  const right = notation.rightAnswer(problem);
  const verdict = answer === right ? element("span", { class: "good" }, " ✓ right") : element("span", { class: "bad" }, ` ✗ wrong: it is ${grouped(right)}`);
  $("answer").replaceChildren(
    notation.asText(problem),
    element("span", { class: "value" }, answer === null ? unreadable(notation, steps) : grouped(answer)),
    verdict,
  );
  const wrong = steps.findIndex((_, k) => isWrong(k));
  const met = steps.findIndex(({ seen }) => selected !== null && model.keyOf(seen.map((s) => line[s])) === selected);
  const first = Math.max(0, met >= 0 ? met : wrong < 0 ? steps.findIndex(isUnsure) : wrong);
  look(first);
  if (focuses) tokens[begin + first].focus();
}

/** What a token of the line is, in a word or two. */
function nameOf(token, notation) {
  if (token === notation.start) return ["start", ""];
  return token.text === "=" ? ["=", ""] : [notation.shown(token.text), notation.where(token)];
}

/** The name of a place, 1 for units. */
function placeName(place) {
  return ["units", "tens", "hundreds"][place - 1] ?? `10${[...String(place - 1)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

/** Show where the heads looked before digit `k` was written. */
function look(k) {
  const { line, steps, tokens, begin } = shown, { notation } = shown.problem;
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
  const names = step.seen.map((index) => nameOf(line[index], notation));
  const head = element("tr", {}, element("td", { "--share": 0 }),
    ...names.map(([text, where]) => element("th", { scope: "col" }, element("b", {}, text), where)));
  const rows = step.pattern.map((shares, number) => element("tr", {},
    element("th", { scope: "row" }, `head ${number + 1}`),
    ...shares.map((share) => element("td", { "--share": share }, share < 0.005 ? "·" : String(Math.round(100 * share))))));
  const said = isEnd ? "Here the model stopped" : `Here the model wrote ${notation.shown(step.text)}`;
  const runnerUp = notation.shown(data.vocabulary[order[1]].replace(END, "stopping"));
  const mistake = isWrong(k) ? [" ", element("span", { class: "bad" }, `That is wrong: right is ${rightInstead(k)}.`)] : [];
  const margin = step.logits[order[0]] - step.logits[order[1]];
  $("looked").replaceChildren(
    element("p", {}, element("b", {}, said), `, ${percent(step.share)} certain, ${decimals(margin, 1)} logits ahead of ${runnerUp}.`, ...mistake, ` It saw only these tokens, and its ${step.pattern.length > 1 ? "heads" : "head"} attended to them in these shares (%):`),
    element("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Attention of each head" }, element("table", { class: "heads" }, element("thead", {}, head), element("tbody", {}, ...rows))),
  );
}

/** Arrow keys walk along the written digits. */
$("sheet").addEventListener("keydown", (event) => {
  const left = shown.problem.notation.isMirrored ? 1 : -1;
  const way = { ArrowLeft: left, ArrowRight: -left, Home: -Infinity, End: Infinity }[event.key];
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

for (const [name, make] of Object.entries(notation.suggestions)) {
  const button = element("button", { type: "button" }, name);
  button.addEventListener("click", () => {
    $("problem").value = make();
    calculate($("problem").value);
  });
  $("suggestions").append(button);
}

