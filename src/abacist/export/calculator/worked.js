// Calculations that are written out: products, divisions and sorting, as docs/certificate-products.md,
// docs/certificate-divisions.md and docs/certificate-sorting.md define them.
//
// Every class offers `parse`, `prompt`, `next`, `mostTokens`, `read` and `rightAnswer`, and for a reader
// `asText`, `beginsRow`, `shown` and `where`. What a token must know of the line before it to place the
// next one is in its `work`.

const MARK = "'";

/** The two operands of a problem such as `12*34`. Throws a sentence if it is not one. */
function parseTwo(text, operation, mostDigits) {
  const parts = text.replace(/[\s,_]/g, "").replace("×", "*").replace("÷", "//").split(operation);
  if (parts.length !== 2 || !parts.every((part) => /^[0-9]+$/.test(part))) {
    throw new Error(`Type two numbers with ${operation} between them, such as 97${operation}8.`);
  }
  const [a, b] = parts.map((part) => part.replace(/^0+(?=.)/, ""));
  if (Math.max(a.length, b.length) > mostDigits) {
    throw new Error(`The model has no limit, but this page stops at ${mostDigits} digits, as the work grows with their square.`);
  }
  return { a, b };
}

const start = () => ({ text: START, place: EVERYWHERE, row: EVERYWHERE, step: EVERYWHERE });
const trimmed = (digits) => [...digits].reverse().join("").replace(/^0+(?=.)/, "");

/** `32*54=⁰[15]5¹[10]1¹1⁰[12]3¹[8]0¹1<end>`: a row of carry, product and digit for each digit of the second number. */
class Multiplication {
  example = "9482*736";
  suggestions = {
    "a small one": () => "23*45",
    nines: () => "9999*9999",
    "20 digits each": () => `${randomNumber(Math.random, 20, 20)}*${randomNumber(Math.random, 20, 20)}`,
  };
  explanation = "The model writes from right to left, and a row for each digit of the second number. A cell holds the carry, the product of two digits, and the digit that is written down. The first digit of every row and the whole last row make the answer.";
  isMirrored = true;

  parse(text) {
    return parseTwo(text, "*", 30);
  }

  asText({ a, b }) {
    return `${grouped(a)} × ${grouped(b)} = `;
  }

  prompt({ a, b }) {
    const width = 3 * a.length + 2;
    return [
      start(),
      ...[...a].reverse().map((text, i) => ({ text, place: 2 * (i + 1), row: EVERYWHERE, operand: 1, column: i + 1 })),
      { text: "*", place: NOWHERE, row: NOWHERE },
      ...[...b].reverse().map((text, j) => ({ text, place: EVERYWHERE, row: 2 * j + 1, operand: 2, column: j + 1 })),
      { text: "=", place: 0, row: 0, work: { width, at: -1 } },
    ];
  }

  next(line, text) {
    const { width, at: before } = line.at(-1).work;
    const at = before + 1, within = at % width, row = Math.floor(at / width) + 1;
    const column = Math.floor(within / 3) + 1, isDigit = within % 3 === 2 || within === width - 1;
    return { text, place: 2 * column - isDigit, row: 2 * row + isDigit, work: { width, at }, column };
  }

  mostTokens({ a, b }) {
    return (3 * a.length + 2) * b.length + 1;
  }

  read({ a, b }, written) {
    const tokens = written.slice(0, -1), width = 3 * a.length + 2;
    if (written.at(-1) !== END || tokens.length !== width * b.length) return null;
    const kinds = tokens.map((text) => (/^[0-9]$/.test(text) ? "d" : text[0] === "[" ? "p" : /^[⁰¹²³⁴-⁹]$/.test(text) ? "c" : "?"));
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

  beginsRow({ work }) {
    return work.at % work.width === 0;
  }

  shown(text) {
    return text.replace(/[[\]]/g, "");
  }

  kind(text) {
    return /^[0-9]$/.test(text) ? "digit" : "aside";
  }

  where(token) {
    if (token.operand) return `${["first", "second"][token.operand - 1]}, ${placeName(token.column)}`;
    const name = this.kind(token.text) === "digit" ? "digit" : token.text[0] === "[" ? "product" : "carry";
    return `${name}, row ${Math.floor(token.work.at / token.work.width) + 1}`;
  }
}

/** `953//26=-0:9'60-1:340…`: the divisor is subtracted until the rest is below 0, and added in the next step. */
class Division {
  constructor(vocabulary) {
    const [first, ...others] = ["//", "%"].filter((operation) => vocabulary.includes(operation));
    this.operations = [first, ...others];
    this.example = `95283${first}37`;
    this.suggestions = {
      "a small one": () => `953${first}26`,
      ...(others.length && { "a remainder": () => "953%26" }),
      "20 digits by 10": () => randomNumber(Math.random, 20, 20) + first + randomNumber(Math.random, 10, 10),
    };
  }

  explanation = "The model brings down one digit of the first number after the other. It subtracts the second number until the rest is below 0, which it writes as a ten's complement, and in the next step adds until it no longer is. A row has a count and the rest, units first; ' marks a borrow or a carry. The counts of the rows that end a step make the quotient, and the last rest is the remainder.";

  parse(text) {
    const operation = text.includes("%") ? "%" : "//";
    if (!this.operations.includes(operation)) throw new Error(`This model knows only ${this.operations[0]}, as in ${this.example}.`);
    const problem = { operation, ...parseTwo(text, operation, 30) };
    if (problem.b === "0") throw new Error("The second number must not be 0.");
    return problem;
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
      start(),
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
      if (count < 0 || count > 9 || row[0] !== `${adds ? "+" : "-"}${count}` || row[1] !== ":") return null;
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
    if (tokens.join(" ") !== "-0 :") return null;
    return trimmed(operation === "%" ? rest : quotient.slice(0, numSteps).reverse());
  }

  rightAnswer({ operation, a, b }) {
    return String(operation === "%" ? BigInt(a) % BigInt(b) : BigInt(a) / BigInt(b));
  }

  beginsRow({ work }) {
    return work.within === 0;
  }

  shown(text) {
    return minus(text);
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
}

/** `a:821,b:9,c:35=a,8>ba,0<b8>ca<end>`: each number is inserted into the list of those before it. */
class Sorting {
  example = "821, 9, 35, 340, 9";
  suggestions = {
    "a small one": () => "3, 1, 2",
    "equal numbers": () => "7, 70, 7, 17, 7",
    "twelve numbers": () => Array.from({ length: 12 }, () => randomNumber(Math.random, 3)).join(", "),
  };
  explanation = "The model names the numbers a, b, c and so on, and inserts each into the list of those before it. It compares digit by digit, from the highest place on: < keeps the number in the list, > inserts the new one before it, and ~ goes on to the next place. The last list is the answer.";
  labels = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"];

  parse(text) {
    const numbers = text.replace(/[a-zA-Z]\s*:/g, "").split(/[\s,;]+/).filter(Boolean);
    if (!numbers.length || !numbers.every((number) => /^[0-9]+$/.test(number))) {
      throw new Error("Type whole numbers with commas between them, such as 821, 9, 35.");
    }
    if (numbers.length > this.labels.length || numbers.some((number) => number.length > 20)) {
      throw new Error("This page sorts at most 52 numbers, which is how many names there are, of at most 20 digits.");
    }
    return { numbers: numbers.map((number) => number.replace(/^0+(?=.)/, "")) };
  }

  asText({ numbers }) {
    return numbers.map((number, k) => `${this.labels[k]}: ${number}`).join(", ") + ". In order: ";
  }

  prompt({ numbers }) {
    const line = [start()];
    numbers.forEach((number, k) => {
      const row = 2 * (k + 1);
      if (k) line.push({ text: ",", place: 0, row: row - 1, step: EVERYWHERE });
      line.push({ text: this.labels[k], place: 0, row, step: EVERYWHERE, operand: k + 1 });
      line.push({ text: ":", place: NOWHERE, row, step: EVERYWHERE });
      [...number].forEach((text, i) => line.push({ text, place: number.length - i, row, step: EVERYWHERE, operand: k + 1 }));
    });
    const lengths = [0, ...numbers.map((number) => number.length)];
    const work = { lengths, step: 0, listed: [], insertions: 0, sames: 0, begin: 0, beginBefore: 0, insertionsBefore: 0, samesBefore: 0, inserted: 1 };
    return [...line, { text: "=", place: 0, row: 2 * numbers.length + 1, step: EVERYWHERE, work }];
  }

  /** Where a token of the work points: to the token of the prompt that decides what follows. */
  next(line, text) {
    const work = { ...line.at(-1).work };
    const isLabel = this.labels.includes(text), isComma = text === ",", isDigit = /^[0-9]$/.test(text);
    work.step++;
    if (isLabel) work.listed = [...work.listed, this.labels.indexOf(text) + 1];
    work.insertions += text === ">";
    work.sames += text === "~";
    if (isComma) {
      work.inserted++;
      work.beginBefore = work.begin;
      work.begin = work.listed.length;
      work.insertionsBefore = work.insertions;
    }
    if (isLabel || isComma) work.samesBefore = work.sames;

    const inList = work.listed.length - work.begin, isIn = work.insertions > work.insertionsBefore;
    const nextOld = work.beginBefore + inList - (isIn && isLabel);
    const isOld = nextOld < work.begin;
    const old = isOld ? work.listed[nextOld] : 0;
    const length = (number) => work.lengths[number] ?? 0;
    const top = Math.max(length(old), length(work.inserted));
    const pointsToNew = isDigit || text === ">" || (isLabel && !isOld);
    const number = pointsToNew ? work.inserted : old;
    const toLabel = text === "<" || text === ">" || (isLabel && (isIn || !isOld));
    const points = isLabel || isComma || isDigit || "<~>".includes(text);
    const isNowhere = !points || number === 0;
    return {
      text, work, step: work.step,
      place: isNowhere ? NOWHERE : toLabel ? 0 : Math.max(top - (work.sames - work.samesBefore), 0),
      row: isNowhere ? NOWHERE : 2 * number + (isLabel && inList >= work.inserted),
    };
  }

  mostTokens({ numbers }) {
    const longest = Math.max(...numbers.map((number) => number.length));
    return ((numbers.length * (numbers.length + 1)) / 2) * (2 * longest + 2) + 1;
  }

  /** The labels of the last list; null unless each token is of the kind that the one before it calls for. */
  read(problem, written) {
    const line = this.prompt(problem), last = problem.numbers.length;
    const labels = [];
    for (const text of written) {
      const before = line.at(-1);
      const kind = this.labels.includes(text) ? "label" : /^[0-9]$/.test(text) ? "digit" : "<~>".includes(text) ? "mark" : text;
      let due = before.place > 0 ? "digit" : "label";
      if (before.place === 0 && before.row % 2 === 1) due = before.row === 2 * last + 1 ? END : ",";
      if (before.text === "=") due = "label";
      if (before.work.step > 0 && /^[0-9]$/.test(before.text)) due = "mark";
      if (kind !== due) return null;
      if (kind === END) break;
      const token = this.next(line, text);
      line.push(token);
      if (kind === "label" && token.work.inserted >= last) labels.push(text);
    }
    const isComplete = written.at(-1) === END && [...labels].sort((x, y) => this.labels.indexOf(x) - this.labels.indexOf(y)).join("") === this.labels.slice(0, last).join("");
    return isComplete ? labels.join("") : null;
  }

  rightAnswer({ numbers }) {
    const order = numbers.map((_, k) => k).sort((i, j) => {
      const [x, y] = [BigInt(numbers[i]), BigInt(numbers[j])];
      return x < y ? -1 : x > y ? 1 : i - j;
    });
    return order.map((k) => this.labels[k]).join("");
  }

  beginsRow({ text }) {
    return text === ",";
  }

  shown(text) {
    return text;
  }

  kind(text) {
    return this.labels.includes(text) ? "digit" : "aside";
  }

  where(token) {
    if (token.work) return token.text === "=" ? "" : `list ${token.work.inserted}`;
    if (!token.operand) return "";
    return token.place > 0 ? `${this.labels[token.operand - 1]}, ${placeName(token.place)}` : "name";
  }
}

function makeNotation({ operation, vocabulary }) {
  if (operation === "sort") return new Sorting();
  return operation === "*" ? new Multiplication() : new Division(vocabulary);
}
