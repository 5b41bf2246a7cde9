// Every neighbourhood of a division.
//
// A step brings down a digit d to the rest r, which makes v = 10 r + d. A row is of one of these kinds, or a
// mirror image of the second or third, in which 9 - x stands for each digit x of r, d and v:
//
//     kind       the row above holds    the row itself    for all b > 0 and
//     first      (digits of a)          v - b             the number v of the first n digits of a, or fewer
//     begins     r                      10 r + d - b      0 <= r < b and all digits d
//     within     v                      v - b             0 <= v < (10 - c) b, in the row `-c:`, c = 1 … 9
//     returns    r - b                  r                 0 <= r < b
//
// docs/certificate-divisions.md derives the bounds. What a row and the row above hold in a column follows
// from a digit of b, a digit of r or v, and the *state* that the column before hands on: borrows, carries, and
// how the digits so far compare with the bound. `statesOf` follows the states from the units until no new one
// appears. The tokens of a row see two columns, and `columnsOf` runs through all digits of two columns
// after each state. If b ends in the first of them, its digit there is not 0, and the bound has to be kept. If b
// goes on, the bound can be kept whatever the two columns hold, because b may lead with a 1 further up.

const marked = (digit, mark) => (mark ? digit + MARK : String(digit));

/** The borrow from the next column, and the digit. */
function subtract(x, y, borrow) {
  const difference = x - y - borrow;
  return [difference < 0 ? 1 : 0, mod10(difference)];
}

// A column of each kind of row: from a state, a digit x of r or v and one of b, the next state, the token
// above, and the token of the row. The last part of a state is true if the number is small enough so far.
const COLUMNS = {
  /** The next digit of v, which is x, stands above; null where a has no more digits. */
  first([borrowed, v], x, b) {
    const [borrow, digit] = subtract(v ?? 0, b, borrowed);
    const above = v === null ? null : x;
    return [[borrow, above, v === null], above === null ? null : String(above), marked(digit, borrow)];
  },
  /** The next digit of v, which is x, stands above. That row added b, and carried where r < b so far. */
  begins([borrowed, v, carried], x, b) {
    const [borrow, digit] = subtract(v, b, borrowed), [carry] = subtract(x, b, carried);
    return [[borrow, x, carry], marked(x, carry), marked(digit, borrow)];
  },
  /** The row above took b from v + b; `rest` is what v - (10 - c) b hands on, below 0 if it is. */
  within([borrowed, carried, rest], x, b, c) {
    const [borrow, digit] = subtract(x, b, borrowed), carry = Math.floor((x + b + carried) / 10);
    return [[borrow, carry, Math.floor((x - (10 - c) * b + rest) / 10)], marked(x, carry), marked(digit, borrow)];
  },
  /** The row above took b from r, and this row gives it back, with a carry for each borrow. */
  returns([borrowed], x, b) {
    const [borrow, digit] = subtract(x, b, borrowed);
    return [[borrow], marked(digit, borrow), marked(x, borrow)];
  },
};

/** A kind of row: its count, its columns, the states in which units are entered, and digits of r or v. */
function rowOf(kind, count, starts, digits = TEN) {
  const c = Number(count[1]);
  return { kind, count, c, starts, digits, column: (state, x, b) => COLUMNS[kind](state, x, b, c) };
}

/** All states in which a column can be entered, with digits below it, units first, that lead there. */
function statesOf({ starts, digits, column }) {
  const reached = new Map(starts.map((state) => [String(state), { state, start: state, x: [], b: [] }]));
  for (const { state, start, x: xs, b: bs } of reached.values()) { // grows while it is read
    for (const x of digits) {
      for (const b of TEN) {
        const [after] = column(state, x, b), key = String(after);
        if (!reached.has(key)) reached.set(key, { state: after, start, x: [...xs, x], b: [...bs, b] });
      }
    }
  }
  return [...reached.values()];
}

/**
 * Two columns: the tokens above, those of the row, and the upper digit of b, which is null above its highest.
 *
 * With each come the digits of r or v, and of b, in these columns and below.
 */
function* columnsOf(row) {
  const lower = new Map(), met = new Set();
  for (const { state, start, x: xs, b: bs } of statesOf(row)) {
    for (const x of row.digits) {
      for (const b of TEN) {
        const [after, above, own] = row.column(state, x, b), canEnd = b > 0;
        const key = `${after} ${above} ${own} ${canEnd}`;
        if (!lower.has(key)) lower.set(key, { after, above, own, canEnd, start, x: [...xs, x], b: [...bs, b] });
      }
    }
  }
  for (const { after, above, own, canEnd, start, x: xs, b: bs } of lower.values()) {
    for (const x of row.digits) {
      for (const b of [...TEN, null]) {
        const [end, nextAbove, next] = row.column(after, x, b ?? 0);
        if (b === null && !(canEnd && end.at(-1))) continue;
        const key = `${above} ${own} ${nextAbove} ${b} ${next}`;
        if (met.has(key)) continue;
        met.add(key);
        yield { above, own, nextAbove, b, next, start, x: [...xs, x], bs: b === null ? bs : [...bs, b] };
      }
    }
  }
}

const WIDE = [EVERYWHERE, EVERYWHERE]; // in all rows and steps
const COUNT = [EVERYWHERE, 3, EVERYWHERE]; // where the count of the row in question stands
const DIVISOR = "the second number's digit", LAST = "the last token";
const numberOf = (digits) => digits.reduceRight((number, digit) => 10 * number + digit, 0);

/** The arguments of `Notation.neighbourhood` for every neighbourhood; some appear more than once. */
function* casesOfDivision(notation) {
  const zero = notation.count("-0");
  yield [":", [2, 0, 131], [[LAST, zero, ...COUNT]], { a: 0, b: 10 }];
  for (const x of TEN) {
    for (const b of TEN) {
      const beside = [DIVISOR, b, 2, ...WIDE], divisor = 10 + b;
      yield [zero, [2, x, 131], [["the digit brought down", x, 0, EVERYWHERE, 2], beside, [LAST, "=", 0, 0, 0]], { a: x, b: divisor }];
      for (const colon of [null, ":"]) { // the end: the row above holds the remainder, which has the digit x
        const above = [["the colon above", colon, 1, 2, 1], ["the digit above", marked(x, x < b), 3, 2, 2]];
        const source = colon ? { b: divisor, rest: x - divisor } : { b: divisor, value: x - divisor };
        yield [END, [2, 11 + x, 121 + b], [beside, ...above, ["the count", zero, ...COUNT], [LAST, ":", 1, 4, 1]], source];
      }
    }
  }
  yield* casesOfRow(notation, rowOf("first", "-0", TEN.map((d) => [0, d, false]), [...TEN, null]), [null]);
  yield* casesOfRow(notation, rowOf("returns", "+9", [[0]]), [null, 1]);
  for (const one of casesOfStep(notation)) {
    yield one;
    yield mirrored(one);
  }
}

/** The rows of a step that subtracts, and the count after each row. */
function* casesOfStep(notation) {
  for (const c of TEN) {
    const above = ["the count above", notation.count(`-${c}`), EVERYWHERE, 1, EVERYWHERE];
    yield [":", [0, 10 * c, 131], [above, [LAST, notation.count("+9"), ...COUNT]], { b: 10, value: -1, last: c }];
    if (c < 9) yield [":", [0, 10 * c, 131], [above, [LAST, notation.count(`-${c + 1}`), ...COUNT]], { b: 10, value: 10 * (c + 1) }];
  }
  yield* casesOfRow(notation, rowOf("begins", "-0", TEN.map((d) => [0, d, 0])), [0, 1]);
  for (let c = 1; c < 10; c++) { // the colon of the row that begins a step is not seen from place 1
    yield* casesOfRow(notation, rowOf("within", `-${c}`, [[0, 0, 0]]), [c > 1 ? 1 : null]);
  }
}

/** What is seen from the colon of a row on; `colons` has the places of the colon above, or null. */
function* casesOfRow(notation, row, colons) {
  const { kind, c } = row, moved = kind === "first" || kind === "begins"; // what stands above belongs to the step before
  const count = ["the count", notation.count(row.count), ...COUNT], step = moved ? 4 : 2;
  const cell = (above, block, next) => {
    const digit = above === null ? null : Number(above[0]);
    const line = kind === "first" ? digit ?? 10 : kind === "returns" ? 11 + (digit ?? 0) : 10 * c + (digit ?? 0);
    return [kind === "first" || kind === "returns" ? 2 : 0, line, 11 * block + next];
  };
  for (const state of row.starts) {
    for (const x of moved ? [0] : TEN) {
      for (const b of TEN) {
        for (const place of colons) {
          const [, above, right] = row.column(state, x, b);
          const digit = moved ? ["the digit brought down", state[1], 0, EVERYWHERE, 2] : ["the digit above", above, 3, 2, 2];
          const colon = ["the colon above", place === null ? null : ":", place, 2, step - 1];
          const last = [count, [LAST, ":", moved ? 0 : 1, 4, 1]], divisor = [DIVISOR, b, 2, ...WIDE];
          const seen = moved ? [digit, divisor, colon, ...last] : [divisor, colon, digit, ...last];
          const previous = kind === "begins" ? (place === 0 ? 9 : 0) : place ?? 0; // its colon is seen if its row is not the first
          yield [right, cell(moved ? String(state[1]) : above, 11, b), seen, sourceOf(row, { start: state, x: [x], b: [b, 1], last: previous })];
        }
      }
    }
  }
  for (const { above, own, nextAbove, b, next, start, x, bs } of columnsOf(row)) {
    const up = [["the digit above", above, 3, 2, step], ["the next digit above", moved ? null : nextAbove, 5, 2, 4]];
    const last = [count, [LAST, own, 3, 4, 2]];
    const source = sourceOf(row, { start, x, b: b === null ? bs : [...bs, 1], isOpen: b !== null });
    for (const operation of b === null ? notation.operations : [null]) {
      const beside = [[DIVISOR, b, 4, ...WIDE], ["the operator", operation, 4, ...WIDE]];
      // In the first row, what stands above is a digit of the first number, which comes before the second.
      const seen = kind === "first" ? [...up, ...beside, ...last] : [...beside, ...up, ...last];
      yield [next, cell(above, Number(own[0]), b ?? 10), seen, operation === null ? source : { ...source, operation }];
    }
    if (b === null) {
      const seen = [["the digit above", nextAbove, 3, 2, step], count, [LAST, next, 3, 4, 2]];
      yield [notation.count(nextCount(row, next)), cell(nextAbove, 10, Number(next[0])), seen, source];
    }
  }
}

/** The next row begins a step, returns or is the last one if the highest digit has a mark. */
function nextCount({ count, c }, highest) {
  if (highest.endsWith(MARK)) return count[0] === "+" ? "-0" : "+9";
  return `-${c + 1}`;
}

/** What `Divisions.problemWith` needs to make a problem in which a row holds these digits, units first. */
function sourceOf({ kind, c }, { start, x, b, last = 0, isOpen = false }) {
  if (kind === "first") {
    const digits = [start[1], ...x.slice(0, -1)], end = digits.indexOf(null);
    const v = end < 0 ? digits : digits.slice(0, end);
    if (end < 0 && v.length > 1 && v.at(-1) === 0) v.push(1); // 0 does not lead
    const divisor = [...b];
    if (isOpen) while (divisor.length < v.length) divisor.splice(-1, 0, 0);
    return { a: numberOf(v), b: numberOf(divisor) };
  }
  const divisor = numberOf(b), number = numberOf(x);
  if (kind === "returns") return { b: divisor, rest: number - divisor, last };
  return { b: divisor, value: kind === "begins" ? 10 * number + start[1] : number + c * divisor, last };
}

const mirrorImages = new Map();

/** A token with 9 - x for each digit x, and the other sign. */
function mirror(text) {
  if (!mirrorImages.has(text)) {
    mirrorImages.set(text, text.replace(/[0-9+-]/g, (sign) => "9876543210-+"["0123456789+-".indexOf(sign)]));
  }
  return mirrorImages.get(text);
}

/** The mirror image, for a step that adds. Only the second number is as before. */
function mirrored([right, [, row, column], parts, { value, last = 0, ...source }]) {
  const seen = parts.map((part) => {
    const [name, text, place, line, step] = part;
    return text === null || name === DIVISOR ? part : [name, mirror(String(text)), place, line, step];
  });
  return [mirror(right), [1, row, column], seen, { ...source, value: -1 - value, last: 9 - last }];
}
