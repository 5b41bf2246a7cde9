// Quotients and remainders: non-restoring division, as docs/certificate-divisions.md defines it.
//
// `953//26=-0:9'60-1:340…`: a step brings down a digit of the first number and subtracts the second until
// the rest is below 0; the next step adds until it no longer is. If the second number has n digits, a row has
// n + 1, units first, with a mark (') where a column borrows from the next one or carries into it.

const MARK = "'";

class Divisions extends Notation {
  name = "Divisions";
  explanation = "The model brings down one digit of the first number after the other. It subtracts the second number until the rest is below 0, which it writes as a ten's complement, and in the next step adds until it no longer is. A row has a count and the rest, units first; ' marks a borrow or a carry. The counts of the rows that end a step make the quotient, and the last rest is the remainder.";
  why = "Each token of the work depends on two neighbouring columns of its row, of the row above, and of the second number.";
  conclusion = "Whatever two numbers you type, every row of their division is among these.";
  isMirrored = false;
  isWork = true;
  maps = [
    { caption: "Rows that subtract. Down: how often that was done, and within each group the digit above. Across: the digit written, and within each group the next digit of the second number, or its end. A cell stands for several neighbourhoods, and shows the one with the smallest margin.", rows: 100, columns: 132, groups: [10, 11] },
    { caption: "Rows that add, which are mirror images of the others: 9 − x stands where x does. In both maps the last two groups are highest digits, and first digits.", rows: 100, columns: 132, groups: [10, 11] },
    { caption: "First rows, above, and last rows, below.", rows: 21, columns: 132, groups: [11, 11] },
  ];

  /** operations: `//`, `%` or both. hasBrackets: whether counts are written as [-3], which a calculator does. */
  constructor(operations, { hasBrackets = false, ...shared } = {}) {
    super(shared);
    this.operations = operations;
    this.hasBrackets = hasBrackets;
    const [first, ...others] = operations;
    this.example = `95283${first}37`;
    this.suggestions = {
      "a small one": () => `953${first}26`,
      ...(others.length && { "a remainder": () => "953%26" }),
      "20 digits by 10": () => randomNumber(Math.random, 20, 20) + first + randomNumber(Math.random, 10, 10),
    };
  }

  /** The token of a count such as -3. */
  count(text) {
    return this.hasBrackets ? `[${text}]` : text;
  }

  parse(text) {
    const operation = text.includes("%") ? "%" : "//";
    if (!this.operations.includes(operation)) throw new Error(`This model knows only ${this.operations[0]}, as in ${this.example}.`);
    const problem = { notation: this, operation, ...parseTwo(text.replace("÷", "//"), operation, WORK_LIMIT) };
    if (problem.b === "0") throw new Error("The second number must not be 0.");
    return problem;
  }

  randomProblem(random) {
    const operation = this.operations[Math.floor(random() * this.operations.length)];
    return randomNumber(random, 7) + operation + randomNumber(random, 4).replace(/^0$/, "1");
  }

  asText({ operation, a, b }) {
    return `${grouped(a)} ${operation === "%" ? "mod" : "÷"} ${grouped(b)} = `;
  }

  prompt({ operation, a, b }) {
    const numSteps = Math.max(1, a.length - b.length + 1), width = b.length + 3;
    const dividend = [...a].map((text, i) => {
      const column = a.length - i, leads = column > numSteps;
      return { text, place: leads ? 2 * (column - numSteps) + 1 : 0, row: leads ? 0 : EVERYWHERE, step: 2 * column, operand: 1, column };
    });
    const divisor = [...b].map((text, i) => ({ text, place: 2 * (b.length - i), row: EVERYWHERE, step: EVERYWHERE, operand: 2, column: b.length - i }));
    return [
      this.start,
      ...dividend,
      { text: operation, place: 2 * (b.length + 1), row: EVERYWHERE, step: EVERYWHERE },
      ...divisor,
      { text: "=", place: 0, row: 0, step: 0, work: { width, numSteps, within: width - 1, row: 0, ended: 0, begins: true } },
    ];
  }

  next(line, text) {
    const work = { ...line.at(-1).work };
    work.within = (work.within + 1) % work.width;
    if (work.within === 0) work.row++;
    const column = work.within - 1, isAction = work.within === 0, isColon = work.within === 1;
    const begins = work.begins && work.ended < work.numSteps;
    const columnsLeft = Math.max(work.numSteps - work.ended - 1, 0);
    if (work.within === work.width - 1) {
      work.begins = text.endsWith(MARK);
      work.ended += work.begins;
    }
    return {
      text, work, column,
      place: isAction ? EVERYWHERE : 2 * column + 1 - (isColon && begins),
      row: 2 * work.row - isAction,
      step: isAction ? EVERYWHERE : 2 * (column + columnsLeft) + isColon,
    };
  }

  mostTokens({ a, b }) {
    return (10 * Math.max(1, a.length - b.length + 1) + 1) * (b.length + 3) + 3;
  }

  read({ operation, a, b }, written) {
    if (written.at(-1) !== END) return null;
    const numSteps = Math.max(1, a.length - b.length + 1), width = b.length + 3;
    const quotient = [];
    let tokens = written.slice(0, -1), rest = [], adds = false, count = 0;
    while (adds || quotient.length < numSteps) {
      const row = tokens.slice(0, width);
      tokens = tokens.slice(width);
      if (count < 0 || count > 9 || row[0] !== this.count(`${adds ? "+" : "-"}${count}`) || row[1] !== ":") return null;
      if (row.length < width || !row.slice(2).every((text) => /^[0-9]'?$/.test(text))) return null;
      rest = row.slice(2).map((text) => text[0]);
      if (row.at(-1).endsWith(MARK)) {
        quotient.push(count);
        adds = !adds;
        count = adds ? 9 : 0;
      } else if (quotient.length >= numSteps) {
        return null;
      } else {
        count += adds ? -1 : 1;
      }
    }
    if (tokens.join(" ") !== `${this.count("-0")} :`) return null;
    return trimmed(operation === "%" ? rest : quotient.slice(0, numSteps).reverse());
  }

  rightAnswer({ operation, a, b }) {
    return String(operation === "%" ? BigInt(a) % BigInt(b) : BigInt(a) / BigInt(b));
  }

  /** The tokens that a right answer consists of, with its work. */
  rightTokens({ a, b }) {
    const numSteps = Math.max(1, a.length - b.length + 1), tokens = [];
    const divisor = [...reversed(b).map(Number), 0], dividend = [...a].map(Number);
    let rest = reversed(dividend.splice(0, a.length - numSteps)), adds = false;
    for (let step = 0; adds || step < numSteps; step++) {
      if (dividend.length) rest = [dividend.shift(), ...rest];
      for (let count = adds ? 9 : 0, isOver = false; !isOver; count += adds ? -1 : 1) {
        let carried = 0;
        tokens.push(this.count(`${adds ? "+" : "-"}${count}`), ":");
        rest = divisor.map((digit, i) => {
          const total = (rest[i] ?? 0) + (adds ? digit + carried : -digit - carried);
          carried = total > 9 || total < 0 ? 1 : 0;
          tokens.push(mod10(total) + (carried ? MARK : ""));
          return mod10(total);
        });
        isOver = carried === 1;
      }
      adds = !adds;
    }
    return [...tokens, this.count("-0"), ":", END];
  }

  beginsRow({ work }) {
    return work.within === 0;
  }

  shown(text) {
    return minus(text.replace(/[[\]]/g, ""));
  }

  kind(text) {
    return /^[0-9]/.test(text) ? "digit" : "aside";
  }

  where(token) {
    if (token.operand) return `${["first", "second"][token.operand - 1]}, ${placeName(token.column)}`;
    if (!token.work) return "";
    const name = token.work.within === 0 ? "count" : token.work.within === 1 ? "" : placeName(token.column);
    return `${name ? `${name}, ` : ""}row ${token.work.row}`;
  }

  /** Everything that the tokens of a row see, with the last one in row 4, or a count in row 3. */
  *neighbourhoods() {
    for (const one of casesOfDivision(this)) yield this.neighbourhood(...one);
  }

  /**
   * A whole problem in which a neighbourhood occurs.
   *
   * The step in question begins with `value`, or follows the last step and begins with `rest`: what four
   * steps have left if it subtracts, or three if it adds. The last of these ended in a row with the
   * count `last`, which is the last digit of the quotient so far, or one less than it.
   */
  problemWith({ source: { a, b, value, rest, last = 0, operation = this.operations[0] } }) {
    if (a === undefined) {
      const left = rest ?? Math.floor(value / 10), adds = left < 0;
      let quotient = Math.floor(10 ** (String(b).length + (adds ? 1 : 2)) / b) + 2;
      quotient += mod10(last + adds - quotient);
      const dividend = quotient * b + left;
      a = rest === undefined ? 10 * dividend + mod10(value) : dividend;
    }
    return `${a}${operation}${b}`;
  }
}
