// Sums and differences of two numbers: how they are written, and every neighbourhood that can occur.
//
// `<start>21+43=64<end>` is 12 + 34 = 46, units first. `<start>54-321=229-<end>` says that 45 - 123 is
// 922 - 1000: a difference is written modulo 10^W, where W is the number of digits of the longer
// operand, and `-` is written where a borrow is left over.

const NUM_OPERANDS = 111; // 10 · 10 digits of an operand that goes on, 10 that end it, and an ended one

/** Number of an operand's two digits among all that there can be, as the maps order them. */
function operandNumber([digit, next]) {
  if (digit === null) return 110;
  return next === null ? 100 + digit : 10 * digit + next;
}

class Columns extends Notation {
  constructor(operation, { spacing = 1, ...shared } = {}) {
    super({ spacing, ...shared });
    this.operation = operation;
    this.sign = operation === "+" ? 1 : -1;
    this.leftOver = operation === "+" ? "1" : "-";
    this.carryName = operation === "+" ? "carry" : "borrow";
    this.signText = operation === "+" ? "+" : "−";
    this.name = operation === "+" ? "Sums" : "Differences";
    this.isMirrored = true; // what is written later stands further left
    this.example = operation === "+" ? "95846+4237" : "10483-4237";
    this.suggestions = {
      "a long carry": () => (operation === "+" ? "99999999999999+1" : "10000000000000-1"),
      "two random numbers": () => this.random(1, 12),
      "60 digits each": () => this.random(60, 60),
      ...(operation === "-" && { "below zero": () => "45-123" }),
    };
    this.why = "Each new digit depends on at most six tokens: the digits of this column and the next, and the digit just written.";
    this.conclusion = "Whatever two numbers you type, their digits are among these, one column after the other.";
    const axes = ["first number: its digit here and the next, 00 to 99; below them, numbers that end or have ended", "second number: the same"];
    this.maps = [
      { axes, caption: `No ${this.carryName} came in.`, rows: NUM_OPERANDS, columns: NUM_OPERANDS, groups: [10, 10] },
      { axes, caption: `A ${this.carryName} came in.`, rows: NUM_OPERANDS, columns: NUM_OPERANDS, groups: [10, 10] },
      { axes: ["first number: its units, 0 to 9", "second number: the same"], caption: "The first digit that is written.", rows: 10, columns: 10 },
    ];
  }

  random(fewest, most, random = Math.random) {
    const number = () => randomNumber(random, most, fewest);
    return number() + this.operation + number();
  }

  randomProblem(random) {
    return this.random(1, 30, random);
  }

  parse(text) {
    return { notation: this, ...parseTwo(text, this.operation, { digits: 4000, because: "" }) };
  }

  asText({ a, b }) {
    return `${grouped(a)} ${this.signText} ${grouped(b)} = `;
  }

  shown(text) {
    return minus(text);
  }

  where({ place, row }) {
    return place === NOWHERE ? "" : `${["first", "second", "answer"][row - 1]}, ${placeName(place / this.spacing)}`;
  }

  prompt({ a, b }) {
    const digits = (number, row) => reversed(number).map((text, i) => ({ text, place: (i + 1) * this.spacing, row, step: 1 }));
    return [
      this.start,
      ...digits(a, 1),
      { text: this.operation, place: NOWHERE, row: NOWHERE, step: 1 },
      ...digits(b, 2),
      { text: "=", place: 0, row: 3, step: 1 },
    ];
  }

  next(line, text) {
    return { text, place: line.at(-1).place + this.spacing, row: 3, step: 1 };
  }

  mostTokens({ a, b }) {
    return Math.max(a.length, b.length) + 2;
  }

  /** The answer that was written, as a number in the usual order; null if it is none. */
  read({ a, b }, written) {
    const [, digits, sign, end] = written.join("").match(/^([0-9]*)(-?)(<end>)?/);
    const isWhole = end && digits && written.length === digits.length + sign.length + 1;
    if (!isWhole || (this.sign < 0 && digits.length !== Math.max(a.length, b.length))) return null;
    const number = reversed(digits).join("");
    if (this.sign > 0) return number;
    return String(BigInt(number) - (sign ? 10n ** BigInt(digits.length) : 0n));
  }

  /** The right answer, by the browser's own integers. */
  rightAnswer({ a, b }) {
    return String(this.sign > 0 ? BigInt(a) + BigInt(b) : BigInt(a) - BigInt(b));
  }

  /** The tokens that a right answer consists of. */
  rightTokens(problem) {
    const answer = BigInt(this.rightAnswer(problem));
    if (this.sign > 0) return [...reversed(String(answer)), END];
    const width = Math.max(problem.a.length, problem.b.length);
    const digits = String(answer < 0n ? answer + 10n ** BigInt(width) : answer).padStart(width, "0");
    return [...reversed(digits), ...(answer < 0n ? ["-"] : []), END];
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
    for (const a of TEN) {
      for (const b of TEN) yield this.case(null, [a, null], [b, null], mod10(a + this.sign * b));
    }
    const goesOn = TEN.flatMap((digit) => TEN.map((next) => [digit, next]));
    const ends = TEN.map((digit) => [digit, null]);
    const hasEnded = [null, null];
    const operand = [...goesOn, ...ends, hasEnded];
    const isZero = ([digit, next]) => digit === 0 && next === null;
    for (const a of operand) {
      for (const b of operand) {
        for (const carry of [0, 1]) {
          const isLaterColumn = carry === 1 || a === hasEnded || b === hasEnded;
          if (isLaterColumn && (isZero(a) || isZero(b))) continue;
          if (a === hasEnded && b === hasEnded && carry === 0) continue; // the line ended before
          yield this.case(carry, a, b, this.following(a, b, carry));
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

  case(carry, a, b, right) {
    const isAtEquals = carry === null, hasEnded = a[0] === null && b[0] === null;
    const written = hasEnded ? this.leftOver : mod10((a[0] ?? 0) + this.sign * ((b[0] ?? 0) + carry));
    const digits = (operand, row) => operand.map((digit, i) => ["", digit, (i + 1) * this.spacing, row]);
    const last = isAtEquals ? ["", "=", 0, 3] : ["", written, this.spacing, 3];
    const cell = isAtEquals ? [2, a[0], b[0]] : [carry, operandNumber(a), operandNumber(b)];
    return this.neighbourhood(right, cell, [...digits(a, 1), ...digits(b, 2), last], { carry, a, b });
  }

  /** A whole problem in which a neighbourhood occurs. */
  problemWith({ source: { carry, a, b } }) {
    // A lower column that carries (9 + 9, or 1 - 9) or does not (1 + 1) leads to a later column.
    const isLaterColumn = carry === 1 || a[0] === null || b[0] === null;
    const [lowA, lowB] = !isLaterColumn ? ["", ""] : carry ? [this.sign > 0 ? "9" : "1", "9"] : ["1", "1"];
    const number = ([digit, next], low) => {
      const digits = (next === null ? "" : String(next)) + (digit ?? "") + low;
      return next === 0 ? `1${digits}` : digits;
    };
    return number(a, lowA) + this.operation + number(b, lowB);
  }

  /** A neighbourhood in words. */
  describe({ source: { carry, a, b } }) {
    const digits = ([digit, next], name) => {
      if (digit === null) return `${name} has ended`;
      return next === null ? `${name} ends with ${digit}` : `${name} has ${digit} here and ${next} next`;
    };
    if (carry === null) return `the units are ${a[0]} and ${b[0]}, and nothing is written yet`;
    const came = `${carry ? "a" : "no"} ${this.carryName} came in`;
    return `${digits(a, "the first number")}, ${digits(b, "the second")}, and ${came}`;
  }
}
