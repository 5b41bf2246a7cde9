// What all notations share: docs/model-definition.md says how lines are written.
//
// A notation writes problems of one or two operations. To the model it offers `prompt`, `next` and
// `mostTokens`; to the check `neighbourhoods`, `problemWith`, `describe` and `maps`; and to the page `parse`,
// `read`, `rightAnswer` and the words with which a reader is told what is what.

const START = "<start>";
const END = "<end>";
const EVERYWHERE = -2; // coordinate of a token that stands in every column
const NOWHERE = -1; // coordinate of a token that stands in no column
const DIGITS = [..."0123456789"];
const TEN = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

const mod10 = (number) => ((number % 10) + 10) % 10;
const reversed = (number) => [...number].reverse();

class Notation {
  /**
   * start: the token that begins a line; a calculator has one for each notation.
   * spacing: the distance of neighbouring columns, which is larger where notations share one window.
   */
  constructor({ start = START, spacing } = {}) {
    this.start = { text: start, place: EVERYWHERE, row: EVERYWHERE, step: EVERYWHERE };
    this.spacing = spacing;
    this.tokens = new Map();
    this.notations = [this];
  }

  /**
   * A neighbourhood: what the last token of a right line can see, and the token that must follow.
   *
   * cell: [map, row, column], where it is drawn.
   * parts: [name, text, place, row, step] of every token but the first; those whose text is null are not there.
   * source: what `problemWith` needs to make a whole problem of it.
   */
  neighbourhood(right, cell, parts, source) {
    const line = [this.start], names = [];
    for (const [name, text, ...where] of parts) {
      if (text === null) continue;
      line.push(this.token(String(text), ...where));
      names.push(name);
    }
    return { notation: this, line, names, right: String(right), cell, source };
  }

  /** A token of a neighbourhood. Equal ones are one object, which saves memory. */
  token(text, place, row, step = 1) {
    const key = `${text} ${place} ${row} ${step}`;
    let token = this.tokens.get(key);
    if (!token) this.tokens.set(key, (token = { text, place, row, step }));
    return token;
  }

  /** A neighbourhood in words. */
  describe({ line, names }) {
    return `it sees ${names.map((name, i) => `${name} ${this.shown(line[i + 1].text)}`).join(", ")}`;
  }

  /** A token as it stands in the line that the page shows. */
  shown(text) {
    return text;
  }

  /** A token in a sentence. */
  named(text) {
    return this.shown(text);
  }
}

/** The two operands of a problem such as `12*34`. Throws a sentence if it is not one. */
function parseTwo(text, operation, limit) {
  const parts = text.replace(/[\s,_']/g, "").replace("−", "-").replace("×", "*").replace("÷", "//").split(operation);
  if (parts.length !== 2 || !parts.every((part) => /^[0-9]+$/.test(part))) {
    throw new Error(`Type two numbers with ${operation} between them, such as 97${operation}8.`);
  }
  const [a, b] = parts.map((part) => part.replace(/^0+(?=.)/, ""));
  if (Math.max(a.length, b.length) > limit.digits) {
    throw new Error(`The model has no limit, but this page stops at ${count(limit.digits)} digits${limit.because}.`);
  }
  return { a, b };
}

/** Of products and divisions, whose lines are long. */
const WORK_LIMIT = { digits: 30, because: ", as the work grows with their square" };

/** The number whose digits these are, units first, without leading zeros. */
const trimmed = (digits) => reversed(digits).join("").replace(/^0+(?=.)/, "");

/** The notation of a page; the program has those that it needs. */
function makeNotation({ operations, isCalculator, mostNumbers }) {
  const [operation] = operations;
  if (isCalculator) return new FiveOperations(operations);
  if (operation === "sort") return new Sorting(mostNumbers);
  if (operation === "*") return new Products();
  return operation === "+" || operation === "-" ? new Columns(operation) : new Divisions(operations);
}
