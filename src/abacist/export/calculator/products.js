// Products: long multiplication, as docs/certificate-products.md defines it, and every neighbourhood.
//
// `32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>` is 23 · 45: a row for each digit of the second number, and in it
// a cell for each digit of the first. A cell holds the carry c, the product p of the two digits, and the digit
// d, where c + p + u is d + 10 times the next carry, and u is the digit of the row above, one column
// further up (0 in the first row). A row ends with its last carry, written once more as a digit.

const CARRIES = [..."⁰¹²³⁴⁵⁶⁷⁸⁹"];

class Products extends Notation {
  example = "9482*736";
  suggestions = {
    "a small one": () => "23*45",
    nines: () => "9999*9999",
    "20 digits each": () => `${randomNumber(Math.random, 20, 20)}*${randomNumber(Math.random, 20, 20)}`,
  };
  name = "Products";
  operation = "*";
  explanation = "The model writes from right to left, and a row for each digit of the second number. A cell holds the carry, the product of two digits, and the digit that is written down. The first digit of every row and the whole last row make the answer.";
  why = "Each token of the work depends on the few tokens of one cell: a digit of each number, the carry that came in, their product, and a digit of the row above.";
  conclusion = "Whatever two numbers you type, every cell of their multiplication is among these.";
  isMirrored = true;
  isWork = true;
  maps = [
    { caption: "The product, after a carry: a multiplication table, 10 blocks down for the digit of the first number, 10 across for that of the second. Within a block: carries down, the digit above across.", rows: 100, columns: 110, groups: [10, 11] },
    { caption: "The digit, after a product, in the same table. A carry is less than the digit that multiplies, or equal where a row stands above, so some blocks are not full.", rows: 100, columns: 110, groups: [10, 11] },
    { caption: "The next carry, after a digit. Within a block: carries down, the digit just written across. A cell stands for all digits that the next row can begin with.", rows: 100, columns: 100, groups: [10, 10] },
    { caption: "The ends of rows: the last carry down; across, the digit that multiplies, and what the next row multiplies by.", rows: 10, columns: 22 },
  ];

  constructor({ spacing = 2, ...shared } = {}) {
    super({ spacing, ...shared });
  }

  parse(text) {
    return { notation: this, ...parseTwo(text, "*", WORK_LIMIT) };
  }

  randomProblem(random) {
    return `${randomNumber(random, 6)}*${randomNumber(random, 6)}`;
  }

  asText({ a, b }) {
    return `${grouped(a)} × ${grouped(b)} = `;
  }

  prompt({ a, b }) {
    const width = 3 * a.length + 2, { spacing } = this;
    return [
      this.start,
      ...reversed(a).map((text, i) => ({ text, place: spacing * (i + 1), row: EVERYWHERE, step: 1, operand: 1, column: i + 1 })),
      { text: "*", place: NOWHERE, row: NOWHERE, step: 1 },
      ...reversed(b).map((text, j) => ({ text, place: EVERYWHERE, row: spacing * j + 1, step: 1, operand: 2, column: j + 1 })),
      { text: "=", place: 0, row: 0, step: 1, work: { width, at: -1 } },
    ];
  }

  next(line, text) {
    const { width, at: before } = line.at(-1).work;
    const at = before + 1, within = at % width, row = Math.floor(at / width) + 1;
    const column = Math.floor(within / 3) + 1, isDigit = within % 3 === 2 || within === width - 1;
    return { text, place: this.spacing * column - isDigit, row: this.spacing * row + isDigit, step: 1, work: { width, at }, column };
  }

  mostTokens({ a, b }) {
    return (3 * a.length + 2) * b.length + 1;
  }

  read({ a, b }, written) {
    const tokens = written.slice(0, -1), width = 3 * a.length + 2;
    if (written.at(-1) !== END || tokens.length !== width * b.length) return null;
    const kinds = tokens.map((text) => (/^[0-9]$/.test(text) ? "d" : /^\[[0-9]+\]$/.test(text) ? "p" : CARRIES.includes(text) ? "c" : "?"));
    const digits = [];
    for (let row = 0; row < b.length; row++) {
      if (kinds.slice(row * width, (row + 1) * width).join("") !== `${"cpd".repeat(a.length)}cd`) return null;
      const own = tokens.slice(row * width, (row + 1) * width).filter((_, i) => kinds[row * width + i] === "d");
      digits.push(...(row === b.length - 1 ? own : own.slice(0, 1)));
    }
    return trimmed(digits);
  }

  rightAnswer({ a, b }) {
    return String(BigInt(a) * BigInt(b));
  }

  /** The tokens that a right answer consists of, with its work. */
  rightTokens({ a, b }) {
    const tokens = [], multiplicand = reversed(a).map(Number);
    let above = [];
    for (const multiplier of reversed(b).map(Number)) {
      const row = [];
      let carry = 0;
      multiplicand.forEach((digit, i) => {
        const product = digit * multiplier, total = carry + product + (above[i + 1] ?? 0);
        tokens.push(CARRIES[carry], `[${product}]`, String(total % 10));
        row.push(total % 10);
        carry = Math.floor(total / 10);
      });
      tokens.push(CARRIES[carry], String(carry));
      above = [...row, carry];
    }
    return [...tokens, END];
  }

  beginsRow({ work }) {
    return work.at % work.width === 0;
  }

  shown(text) {
    return text.replace(/[[\]]/g, "");
  }

  named(text) {
    return text[0] === "[" ? `the product ${this.shown(text)}` : text;
  }

  kind(text) {
    return /^[0-9]$/.test(text) ? "digit" : "aside";
  }

  where(token) {
    if (token.operand) return `${["first", "second"][token.operand - 1]}, ${placeName(token.column)}`;
    const name = this.kind(token.text) === "digit" ? "digit" : token.text[0] === "[" ? "product" : "carry";
    return `${name}, row ${Math.floor(token.work.at / token.work.width) + 1}`;
  }

  /**
   * Everything that the tokens of a cell see: of column 1, row 2, as only differences count.
   *
   * A carry sees a, b and u; a product sees its carry as well. A digit sees a, its carry and product, and b
   * of the next row. The last carry of a row sees b, and the digit after it that carry and b of the next
   * row. A carry is at most b, and in the first row less, or 0: c + p + u <= b + 9 b + 9 = 10 b + 9.
   * Some cases appear more than once.
   */
  *neighbourhoods() {
    const at = this.spacing;
    yield this.neighbourhood("⁰", [3, 0, 21], [["", "=", 0, 0]], { a: 1, b: 1 });
    for (const isFirst of [true, false]) {
      for (const b of TEN) {
        const mostCarry = isFirst ? Math.max(b - 1, 0) : b;
        const followers = isFirst || b > 0 ? [null, ...TEN] : TEN; // b has no leading 0
        const multiplier = ["the digit of the second number", b, EVERYWHERE, at + 1];
        for (let carry = 0; carry <= mostCarry; carry++) {
          const written = ["the carry", CARRIES[carry], at, 2 * at];
          for (const above of isFirst ? [null] : TEN) {
            const up = ["the digit above", above, 2 * at - 1, at + 1];
            for (const a of TEN) {
              const total = carry + a * b + (above ?? 0), digit = total % 10;
              const source = { a, b, carry, above };
              const multiplicand = ["the digit of the first number", a, at, EVERYWHERE];
              const product = ["the product", `[${a * b}]`, at, 2 * at];
              const row = 10 * a + carry, column = 11 * b + (above ?? -1) + 1;
              const cell = [multiplicand, multiplier, up, written];
              yield this.neighbourhood(product[1], [0, row, column], cell, source);
              yield this.neighbourhood(digit, [1, row, column], [...cell, product], source);
              for (const next of followers) {
                const seen = [multiplicand, this.follower(next), written, product, ["the digit written", digit, at - 1, 2 * at + 1]];
                yield this.neighbourhood(CARRIES[Math.floor(total / 10)], [2, row, 10 * b + digit], seen, { ...source, next });
              }
            }
          }
          const source = { a: null, b, carry, above: null };
          yield this.neighbourhood(carry, [3, carry, b], [multiplier, ["the last carry", CARRIES[carry], at, 2 * at]], source);
          for (const next of followers) {
            const seen = [this.follower(next), ["the last carry", CARRIES[carry], at, 2 * at], ["the digit written", carry, at - 1, 2 * at + 1]];
            yield this.neighbourhood(next === null ? END : "⁰", [3, carry, 11 + (next ?? -1)], seen, { ...source, next });
          }
        }
      }
    }
  }

  follower(next) {
    return ["the digit for the next row", next, EVERYWHERE, 2 * this.spacing + 1];
  }

  /**
   * A whole problem in which a neighbourhood occurs.
   *
   * The carry comes from the first column, or from the column before. A row that is multiplied by 0
   * shifts the row above by one column, and a row that is multiplied by 1 is the first number, so any
   * digit can stand above the rows that follow them.
   */
  problemWith({ source: { a, b, carry = 0, above = null, next = null } }) {
    if (next === null && b === 0) next = 1; // 0 does not lead
    const below = next === null ? "" : `1${next}`;
    if (a === null && carry >= b && carry > 0) return `99*${below}${b}9`; // 99 · 9 = 891, and 99 · b + 89 leads with b
    const pairs = TEN.flatMap((added) => TEN.map((digit) => [added, digit]));
    const [added, digit] = pairs.find(([x, y]) => Math.floor((y * b + x) / 10) === carry);
    if (a === null) return `${digit}*${below}${b}`;
    return above === null ? `1${a}${digit}*${below}${b}` : `1${above}${added}${a}${digit}*${below}${b}01`;
  }
}
