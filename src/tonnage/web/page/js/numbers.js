/* Numbers as people read them: base units in, a text with its unit out. A number that nobody knows has no text here: it is said to be
   unknown. Units that are words are in the page's language. */
import { t, tr } from "./words.js";

const GIB = 2 ** 30;
const MINUS = "\u2212";
const WIDEST = 1e7; // from here on a number is written in powers of ten where it stands in a column

/** Formats are kept: a page has hundreds of numbers, and making a format takes longer than using it. */
const formats = new Map();
function written(value, name, digits) {
  const key = `${name}${digits}`;
  if (!formats.has(key)) {
    const places = name === "figures" ? { maximumSignificantDigits: digits } : { minimumFractionDigits: digits, maximumFractionDigits: digits };
    formats.set(key, new Intl.NumberFormat("en", places));
  }
  return formats.get(key).format(value);
}

/** A number with separators, `digits` of them after the point at most and at least. */
export function fixed(value, digits = 0) {
  const text = written(Math.abs(value), "places", digits);
  return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

/** About `digits` figures that matter, whatever the size; 1e21 and 1e-9 in powers of ten. */
export function significant(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value).replace("-", MINUS);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return fixed(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(digits - 1).replace("e+", "e").replace("-", MINUS);
  const text = written(Number(value.toPrecision(digits)), "figures", digits);
  return text.replace("-", MINUS);
}

export const gib = (bytes, digits = 1) => plain(bytes / GIB, digits);
export const percent = (share, digits = 1) => `${fixed(share * 100, digits)} %`;

/** Digits after the point; what no column has room for in powers of ten: 7.002e9. */
function plain(value, digits) {
  return Math.abs(value) < WIDEST ? fixed(value, digits) : powers(value, 3);
}

/** 7.002e9; without `digits` as many as there are: 2e9. */
export const powers = (value, digits) => value.toExponential(digits).replace("e+", "e").replace("-", MINUS);

/** A change as a part of what was: "+ 3.9 %", "− 12 %". */
export function change(share) {
  if (Math.abs(share) < 0.0005) return "0 %";
  const digits = Math.abs(share) < 0.1 ? 1 : 0;
  return `${share < 0 ? MINUS : "+"} ${fixed(Math.abs(share) * 100, digits)} %`;
}

/** Steps of a unit: [factor, name], largest first. */
function stepped(value, steps, digits = 3) {
  const [factor, name] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1);
  return [figures(value / factor, digits), name];
}

/** Three figures, but all before the point: 61.3, 5.12, 28,602. */
function figures(value, digits = 3) {
  const before = Math.max(1, Math.floor(Math.log10(Math.abs(value) || 1)) + 1);
  return plain(value, Math.max(0, digits - before));
}

const BYTES = [[2 ** 40, "TiB"], [GIB, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const SECONDS = [[86400 * 2, "days"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
const JOULES = [[3.6e15, "TWh"], [3.6e12, "GWh"], [3.6e9, "MWh"], [3.6e6, "kWh"], [3600, "Wh"], [1, "J"]];
const COUNTS = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"], [1, ""]];
const POWERS = [[1e21, "Z"], [1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1, ""]];

/** [text, unit] of a duration. Days from two on. */
export function seconds(value) {
  if (value === 0) return ["0", "s"];
  const [, name] = stepped(value, SECONDS);
  if (name === "days") return [figures(value / 86400), t("days")];
  return [figures(value / { h: 3600, min: 60, s: 1, ms: 1e-3, "µs": 1e-6 }[name]), name];
}

export const joules = (value) => stepped(value, JOULES);
export const bytes = (value) => (value === 0 ? ["0", "GiB"] : Math.abs(value) >= GIB / 100 && Math.abs(value) < 2 ** 40 * 10 ? [gib(value, 2), "GiB"] : stepped(value, BYTES));

/** "$71,200": four figures of large sums, cents of small ones, and at least `digits` after the point of what has such; "$47.50T" of what no
    tile has room for. */
export function usd(value, digits = 0) {
  const size = Math.abs(value);
  if (size >= 1e9) return `$${stepped(value, COUNTS, 4).join("")}`;
  if (size >= 10000) return `$${fixed(Number(value.toPrecision(4)))}`;
  if (size >= 1000) return `$${fixed(value, digits)}`;
  return `$${fixed(value, Math.max(digits, size >= 0.1 || size === 0 ? 2 : 1 - Math.floor(Math.log10(size))))}`;
}

const SAME = 1e-3; // a share of less than that is no difference that an estimate can see
const FINEST = 8; // digits after the point

/** How `usd` writes sums that stand in one column: alike, and with enough digits that two which differ do not look the same. */
export function usdApart(values) {
  const known = values.filter((value) => value !== null && value !== undefined).sort((one, other) => one - other);
  const alike = (digits) => known.some((value, i) => i && value > known[i - 1] * (1 + SAME) && usd(value, digits) === usd(known[i - 1], digits));
  let digits = 0;
  while (digits < FINEST && alike(digits)) digits++;
  return (value) => usd(value, digits);
}

/** "2.54 M", "356 k", 9,876: three figures and a letter from ten thousand on, which no tile breaks. */
export function compact(value) {
  if (Math.abs(value) < 10000) return Math.abs(value) >= 1000 ? fixed(value) : significant(value, 3);
  return stepped(value, COUNTS).filter(Boolean).join("\u00a0");
}

/** "$1.14 M": the same of money. */
export const compactUsd = (value) => (Math.abs(value) < 10000 ? usd(value) : `$${compact(value)}`);

/** 70.6B, 128k: a count in short. */
export function short(value) {
  const [text, name] = stepped(value, COUNTS);
  return text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") + name;
}

/** Tokens in the thousands that `among` is counted in: 2.5k and 10k beside 2,560 of 1,024 each, 16k and 32k beside 16,000. */
export function counted(value, among) {
  const thousand = among % 1000 && among % 256 === 0 ? 1024 : 1000;
  const [size, name] = [[thousand ** 4, "T"], [thousand ** 3, "B"], [thousand ** 2, "M"], [thousand, "k"]].find(([least]) => value >= least) ?? [1, ""];
  return significant(value / size, 5) + name;
}

/** [text, unit] of a figure in its base unit. */
export function human(value, unit) {
  if (value === null || value === undefined) return ["", ""];
  if (unit === "bytes") return bytes(value);
  if (unit === "seconds") return seconds(value);
  if (unit === "joules") return joules(value);
  if (unit === "USD") return [usd(value), ""];
  if (unit === "FLOP" || unit === "FLOP/s" || unit === "bytes/s") {
    const [text, power] = value === 0 ? ["0", ""] : stepped(value, POWERS);
    return [text, power + unit.replace("bytes", "B")];
  }
  return [significant(value), tr(unit)];
}

/** The same as one text, with a space before the unit. */
export function said(value, unit) {
  return human(value, unit).filter(Boolean).join(" ");
}
