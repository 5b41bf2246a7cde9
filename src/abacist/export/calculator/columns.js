// Sums and differences of two numbers: how they are written, and every neighbourhood that can occur.
//
// `<start>21+43=64<end>` is 12 + 34 = 46, units first. `<start>54-321=229-<end>` says that 45 - 123 is
// 922 - 1000: a difference is written modulo 10^W, where W is the number of digits of the longer
// operand, and `-` is written where a borrow is left over.

const MOST_DIGITS = 4000;

class Columns {
  constructor(operation) {
    this.operation = operation;
    this.sign = operation === "+" ? 1 : -1;
    this.leftOver = operation === "+" ? "1" : "-";
    this.carryName = operation === "+" ? "carry" : "borrow";
    this.signText = operation === "+" ? "+" : "−";
    this.isMirrored = true; // what is written later stands further left
    this.example = operation === "+" ? "95846+4237" : "10483-4237";
    this.suggestions = {
      "a long carry": () => (operation === "+" ? "99999999999999+1" : "10000000000000-1"),
      "two random numbers": () => this.random(1, 12),
      "60 digits each": () => this.random(60, 60),
      ...(operation === "-" && { "below zero": () => "45-123" }),
    };
  }

  random(fewest, most) {
    const number = () => randomNumber(Math.random, most, fewest);
    return number() + this.operation + number();
  }

  /** The two operands of a problem such as `12+34`. Throws a sentence if it is not one. */
  parse(text) {
    const parts = text.replace(/[\s,_']/g, "").replace("−", "-").split(this.operation);
    if (parts.length !== 2 || !parts.every((part) => /^[0-9]+$/.test(part))) {
      throw new Error(`Type two numbers with ${this.operation} between them, such as 12${this.operation}34.`);
    }
    const [a, b] = parts.map((part) => part.replace(/^0+(?=.)/, ""));
    if (Math.max(a.length, b.length) > MOST_DIGITS) {
      throw new Error(`The model has no limit, but this page stops at ${MOST_DIGITS.toLocaleString("en")} digits.`);
    }
    return { a, b };
  }

  asText({ a, b }) {
    return `${grouped(a)} ${this.signText} ${grouped(b)} = `;
  }

  shown(text) {
    return minus(text);
  }

  where({ place, row }) {
    return place === NOWHERE ? "" : `${["first", "second", "answer"][row - 1]}, ${placeName(place)}`;
  }

  prompt({ a, b }) {
    const digits = (number, row) => [...number].reverse().map((text, i) => ({ text, place: i + 1, row }));
    return [
      { text: START, place: EVERYWHERE, row: EVERYWHERE },
      ...digits(a, 1),
      { text: this.operation, place: NOWHERE, row: NOWHERE },
      ...digits(b, 2),
      { text: "=", place: 0, row: 3 },
    ];
  }

  next(line, text) {
    return { text, place: line.at(-1).place + 1, row: 3 };
  }

  mostTokens({ a, b }) {
    return Math.max(a.length, b.length) + 2;
  }

  /** The answer that was written, as a number in the usual order; null if it is none. */
  read({ a, b }, written) {
    const [, digits, sign, end] = written.join("").match(/^([0-9]*)(-?)(<end>)?/);
    const isWhole = end && digits && written.length === digits.length + sign.length + 1;
    if (!isWhole || (this.sign < 0 && digits.length !== Math.max(a.length, b.length))) return null;
    const number = [...digits].reverse().join("");
    if (this.sign > 0) return number;
    return String(BigInt(number) - (sign ? 10n ** BigInt(digits.length) : 0n));
  }

  /** The right answer, by the browser's own integers. */
  rightAnswer({ a, b }) {
    return String(this.sign > 0 ? BigInt(a) + BigInt(b) : BigInt(a) - BigInt(b));
  }

  /**
   * Everything that the last token of a right line can see, with the token that must follow.
   *
   * A token sees its own column and the next one. So at `=` it sees the units, and after that each
   * operand goes on into the next column, ends in this one, or has ended before. It does not end with a
   * leading 0, unless it is the number 0. The carry into this column is 0 or 1, and 0 in the first.
   * Every case appears once.
   */
  *neighbourhoods() {
    for (let a = 0; a < 10; a++) {
      for (let b = 0; b < 10; b++) yield this.neighbourhood(null, [a, null], [b, null], mod10(a + this.sign * b));
    }
    const goesOn = Array.from({ length: 100 }, (_, i) => [Math.floor(i / 10), i % 10]);
    const ends = Array.from({ length: 10 }, (_, digit) => [digit, null]);
    const hasEnded = [null, null];
    const operand = [...goesOn, ...ends, hasEnded];
    const isZero = ([digit, next]) => digit === 0 && next === null;
    for (const a of operand) {
      for (const b of operand) {
        for (const carry of [0, 1]) {
          const isLaterColumn = carry === 1 || a === hasEnded || b === hasEnded;
          if (isLaterColumn && (isZero(a) || isZero(b))) continue;
          if (a === hasEnded && b === hasEnded && carry === 0) continue; // the line ended before
          yield this.neighbourhood(carry, a, b, this.following(a, b, carry));
        }
      }
    }
  }

  /** The token after the digit of a column, by the rule that children learn. */
  following([a, aNext], [b, bNext], carry) {
    if (a === null && b === null) return END; // after the last carry
    const carryOut = this.carryOut(a, b, carry);
    if (aNext === null && bNext === null) return carryOut ? this.leftOver : END;
    return mod10((aNext ?? 0) + this.sign * ((bNext ?? 0) + carryOut));
  }

  carryOut(a, b, carry) {
    const total = (a ?? 0) + this.sign * ((b ?? 0) + carry);
    return total > 9 || total < 0 ? 1 : 0;
  }

  neighbourhood(carry, a, b, right) {
    const isAtEquals = carry === null, hasEnded = a[0] === null && b[0] === null;
    const written = hasEnded ? this.leftOver : mod10((a[0] ?? 0) + this.sign * ((b[0] ?? 0) + carry));
    const digits = (operand, row) =>
      operand.flatMap((digit, i) => (digit === null ? [] : [{ text: String(digit), place: i + 1, row }]));
    const last = isAtEquals ? { text: "=", place: 0, row: 3 } : { text: String(written), place: 1, row: 3 };
    const line = [{ text: START, place: EVERYWHERE, row: EVERYWHERE }, ...digits(a, 1), ...digits(b, 2), last];
    return { carry, a, b, line, right: String(right) };
  }

  /** A whole problem in which a neighbourhood occurs. */
  problemWith({ carry, a, b }) {
    // A lower column that carries (9 + 9, or 1 - 9) or does not (1 + 1) leads to a later column.
    const isLaterColumn = carry === 1 || a[0] === null || b[0] === null;
    const [lowA, lowB] = !isLaterColumn ? ["", ""] : carry ? [this.sign > 0 ? "9" : "1", "9"] : ["1", "1"];
    const number = ([digit, next], low) => {
      const digits = (next === null ? "" : String(next)) + (digit ?? "") + low;
      return next === 0 ? `1${digits}` : digits;
    };
    return { a: number(a, lowA), b: number(b, lowB) };
  }

  /** A neighbourhood in words. */
  describe({ carry, a, b }) {
    const digits = ([digit, next], name) => {
      if (digit === null) return `${name} has ended`;
      return next === null ? `${name} ends with ${digit}` : `${name} has ${digit} here and ${next} next`;
    };
    if (carry === null) return `the units are ${a[0]} and ${b[0]}, and nothing is written yet`;
    const came = `${carry ? "a" : "no"} ${this.carryName} came in`;
    return `${digits(a, "the first number")}, ${digits(b, "the second")}, and ${came}`;
  }
}

function mod10(number) {
  return ((number % 10) + 10) % 10;
}

const makeNotation = ({ operation }) => new Columns(operation);
