/* Two languages. English is the key of every string: `t` for what the page says itself (a test finds each call and demands its
   Chinese), `tr` for sentences and names that the answers carry. */
import { locale } from "./api.js";
import { translator } from "./sentences.js";
import { joined } from "./spacing.js";

export const LANGUAGES = { en: "en", zh: "zh-Hans" };
const LONGEST = 4000; // characters of a sentence that are looked up; what is longer is shown as it is
const known = { en: { exact: {}, said: (text) => text } };
let now = "en";

export const language = () => now;

/** Switches. The words come from the server the first time; where they cannot be had the page stays as it is. */
export async function speak(wanted) {
  if (!Object.hasOwn(LANGUAGES, wanted)) return;
  if (!known[wanted]) {
    const words = await locale(wanted);
    known[wanted] = { exact: words.exact, said: translator(words) };
  }
  now = wanted;
  document.documentElement.lang = LANGUAGES[wanted];
}

/** A string of the page, its {names} filled. */
export function t(english, values = {}) {
  const text = known[now].exact[english] ?? english;
  const pieces = text.split(/\{(\w+)\}/).map((piece, i) => (i % 2 ? (values[piece] ?? `{${piece}}`) : piece));
  return now === "en" ? pieces.join("") : joined(pieces);
}

/** A sentence or name that Python made, in the page's language; what nobody translated stays as it is. */
export function tr(english) {
  if (now === "en" || !english || english.length > LONGEST) return english ?? "";
  return known[now].said(english);
}
