// Random numbers for problems.

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number of at most this many digits; half of them are rich in 0 and 9, for long carries. */
function randomNumber(random, mostDigits, fewestDigits = 1) {
  const digits = random() < 0.5 ? "0123456789" : "0123456789099999999";
  const length = fewestDigits + Math.floor(random() * (mostDigits - fewestDigits + 1));
  const number = Array.from({ length }, () => digits[Math.floor(random() * digits.length)]).join("");
  if (number[0] !== "0" || length === 1) return number;
  return `1${number.slice(1)}`;
}
