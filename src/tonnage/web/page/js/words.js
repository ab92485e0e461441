/* Two languages. English is the key of every string: `t` for what the page says itself (a test finds each call and demands its
   Chinese), `tr` for sentences and names that the answers carry. The server has put into words what it made from data; all else is looked
   up as a whole. */
import { locale, sayIn, wordsOf } from "./api.js";
import { joined } from "./spacing.js";

export const LANGUAGES = { en: "en", zh: "zh-Hans" };
const known = { en: {} };
let now = "en";

export const language = () => now;

/** Switches. The words come from the server the first time; where they cannot be had the page stays as it is. */
export async function speak(wanted) {
  if (!Object.hasOwn(LANGUAGES, wanted)) return;
  known[wanted] ??= await locale(wanted);
  now = wanted;
  sayIn(wanted);
  document.documentElement.lang = LANGUAGES[wanted];
}

const found = (english) => (Object.hasOwn(known[now], english) ? known[now][english] : undefined);

/** A string of the page, its {names} filled. */
export function t(english, values = {}) {
  const text = found(english) ?? english;
  const pieces = text.split(/\{(\w+)\}/).map((piece, i) => (i % 2 ? (values[piece] ?? `{${piece}}`) : piece));
  return now === "en" ? pieces.join("") : joined(pieces);
}

/** A sentence or name that Python made, in the page's language; what nobody translated stays as it is. */
export function tr(english) {
  if (now === "en" || !english) return english ?? "";
  return wordsOf(english) ?? found(english) ?? english;
}
