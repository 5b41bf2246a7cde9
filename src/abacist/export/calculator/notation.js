// What all notations share: docs/model-definition.md says how lines are written.
//
// A notation writes problems of one or two operations. The model uses its methods `prompt` and `next` and
// its limit `mostTokens`; the check uses `neighbourhoods`, `problemWith`, `describe` and `maps`; and the page
// uses `parse`, `read`, `rightAnswer` and the texts that explain the notation to a reader.

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
   * spacing: the distance between neighbouring columns, which is larger where notations share one window.
   */
  constructor({ start = START, spacing } = {}) {
    this.start = { text: start, place: EVERYWHERE, row: EVERYWHERE, step: EVERYWHERE };
    this.spacing = spacing;
    this.tokens = new Map();
    this.notations = [this];
  }

  /**
   * Return a neighbourhood: the tokens that the last token of a right line sees, and the token that must follow.
   *
   * cell: [map, row, column] of its cell in the pictures.
   * parts: [name, text, place, row, step] of every token but the first. Tokens whose text is null are absent.
   * source: the argument with which `problemWith` makes a whole problem that contains it.
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

  /** Return a token of a neighbourhood. Equal tokens share one object, which saves memory. */
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

/** Return the two operands of a problem such as `12*34`. Throws a message for the reader if it is not one. */
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

/** Longest operands of products and divisions, and the reason for the limit. */
const WORK_LIMIT = { digits: 30, because: ", as the work grows with their square" };

/** Return the number with these digits, which are listed units first, without leading zeros. */
const trimmed = (digits) => reversed(digits).join("").replace(/^0+(?=.)/, "");

/** Return the notation of a page. The program contains only the notations that the page needs. */
function makeNotation({ operations, isCalculator, mostNumbers }) {
  const [operation] = operations;
  if (isCalculator) return new FiveOperations(operations);
  if (operation === "sort") return new Sorting(mostNumbers);
  if (operation === "*") return new Products();
  return operation === "+" || operation === "-" ? new Columns(operation) : new Divisions(operations);
}
