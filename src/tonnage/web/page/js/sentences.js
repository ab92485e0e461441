/* A finished English sentence in another language: as tonnage.language.sentences makes it, by the same catalogue. By its template, and its
   parts by theirs; several sentences one by one, a list item by item. A template counts only where nothing English is left over in its
   places, unless most of the sentence is the template's own. */

import { WIDE, joined } from "./spacing.js";

const DEEPEST = 6; // sentences in sentences
const MOST_TRIED = 12; // templates for one sentence
const MOST_SENTENCES = 8; // that are tried together; of more, each is looked up by itself
const OWN = [12, 0.25]; // letters, and share of a sentence's: where so much is the template's own, what is put in may stay English
const PROSE = /(?<![\w/.`'"-])[a-z]{2,} [a-z]{2,}(?![\w/-])/u; // two plain words in a row: no name, number, path or code
const QUOTED = /(?<!\w)'[^']*'(?!\w)/gu; // names, as they were typed
const LISTS = [[/; /u, "；"], [/, /u, "，"], [/,? and |, /u, "、"], [/,? or |, /u, "、"]];
const SIGNS = [" + ", " * ", " / "]; // of a TERM's text
const LETTER = /(?<![\w.])[b-zB-Z](?![\w.])/u; // of a formula, whose code is the same in all languages
const NAME = /^[\w.-]+$/u;
const ITEM = "(?:'[^']*'|`[^`]*`|[^\\s,;'`]+)";
const NAMES = new RegExp(`^${ITEM}(?:(?:, |,? and |,? or )${ITEM})*$`, "u"); // as they are typed; what stands between them is translated
const BREAK = /(?<=[.?!]) (?=\S)/u; // between sentences
const SEVERAL = /[.?!;] |, and /u;

/** A template from its regular expression and its translation: the literal texts between its places. */
function template([pattern, into]) {
  const groups = pattern.slice(1, -1).split("([\\s\\S]*?)");
  const again = groups.some((each) => each.includes("(?:\\")); // a place that stands twice
  const literals = groups.map((each) => each.replace(/\\([\\^$.*+?()[\]{}|/])/gu, "$1"));
  const named = literals.slice(1).map((_, i) => new RegExp(`(^|[^}]) \\{${i}\\}|\\{${i}\\} `, "u").test(into));
  return { literals, into, named, weight: literals.join("").length, whole: again ? new RegExp(pattern, "u") : null };
}

/** What was put in, or null; each part as short as can be, or the first ones as long as can be. */
function parts({ literals, whole }, sentence, longest) {
  if (whole) return longest ? null : (whole.exec(sentence)?.slice(1) ?? null);
  const [first, last] = [literals[0], literals.at(-1)];
  let [at, end] = [first.length, sentence.length - last.length];
  if (end < at || !sentence.startsWith(first) || !sentence.endsWith(last)) return null;
  const between = literals.slice(1, -1);
  const found = [];
  for (const literal of longest ? between.reverse() : between) {
    const place = longest ? sentence.slice(0, end).lastIndexOf(literal) : sentence.slice(0, end).indexOf(literal, at);
    if (place < at) return null;
    found.push(longest ? sentence.slice(place + literal.length, end) : sentence.slice(at, place));
    if (longest) end = place;
    else at = place + literal.length;
  }
  return longest ? [sentence.slice(at, end), ...found.reverse()] : [...found, sentence.slice(at, end)];
}

const filled = ({ into }, values) => joined(into.split(/\{(\d+)\}/u).map((piece, i) => (i % 2 ? values[Number(piece)] : piece)));
/** Names stay as they are; the commas and the last "or" are the language's. */
const asTyped = (names) => names.replace(/,? and /gu, " 和 ").replace(/,? or /gu, " 或 ").replaceAll(", ", "、");
/** Whether a template may have caught a word of one part of the text, as "{0} accelerators" the last one of "cheaper; 3 accelerators". */
function loose({ literals, weight }, values) {
  const ends = ["", "."].includes(literals.at(-1)) ? values.at(-1) : "";
  return values.some((each) => each.endsWith(",")) || (!literals[0] && SEVERAL.test(values[0])) || BREAK.test(ends) || (weight < OWN[0] && ends.includes("; "));
}
const english = (text) => PROSE.test(text.replace(QUOTED, ""));

/** Translates by a catalogue {exact, patterns}; what was looked up once is remembered. */
export function translator({ exact, patterns }) {
  const templates = patterns.map(template);
  const known = new Map();

  function said(text, depth = 0) {
    if (Object.hasOwn(exact, text)) return exact[text];
    const bare = text.trim();
    if (bare !== text) {
      const made = said(bare, depth);
      let [before, after] = [/^\s*/u.exec(text)[0], /\s*$/u.exec(text)[0]];
      // Between sentences of a language that has no blanks there.
      if (depth && made !== bare) [before, after] = [WIDE.test(made[0]) ? "" : before, WIDE.test(made.at(-1)) ? "" : after];
      return before + made + after;
    }
    const key = `${depth} ${text}`;
    if (!known.has(key)) known.set(key, anew(text, depth));
    return known.get(key);
  }

  function anew(text, depth) {
    if (depth >= DEEPEST || !/\p{L}/u.test(text)) return text;
    if (text.includes("\n")) return text.split("\n").map((line) => said(line, depth)).join("\n");
    if (text.startsWith("(") && text.endsWith(")")) {
      const made = said(text.slice(1, -1), depth + 1);
      return made === text.slice(1, -1) ? text : `（${made}）`;
    }
    if (text.endsWith(".") && Object.hasOwn(exact, text.slice(0, -1))) return `${exact[text.slice(0, -1)]}。`;
    for (const sign of LETTER.test(text) ? [] : SIGNS) {
      const made = text.includes(sign) ? listed(text.split(sign), sign, depth) : null;
      if (made !== null) return made;
    }
    return byTemplate(text, depth) ?? pieces(text, depth)[0] ?? text;
  }

  function byTemplate(text, depth) {
    let second = null;
    const found = matching(text).map(([each, values]) => [each, values, loose(each, values)]);
    for (const [each, values, late] of found.sort((one, other) => one[2] - other[2])) {
      const whole = late ? whollyInPieces(text, depth) : null;
      if (whole) return whole;
      const inside = values.map((part, i) => (each.named[i] && NAMES.test(part) ? asTyped(part) : said(part, depth + 1)));
      if (!inside.some(english)) return filled(each, inside);
      if (second === null && each.weight >= Math.max(OWN[0], OWN[1] * text.length)) second = filled(each, inside);
    }
    return whollyInPieces(text, depth) ?? second;
  }

  const whollyInPieces = (text, depth) => pieces(text, depth).find((made) => !english(made)) ?? null;

  /** Templates that fit, the most literal text first: so are they sorted. */
  function matching(text) {
    const found = [];
    for (const each of templates) {
      const short = parts(each, text, false);
      if (!short) continue;
      found.push([each, short]);
      const long = parts(each, text, true);
      if (long && long.join("\0") !== short.join("\0")) found.push([each, long]);
      if (found.length >= MOST_TRIED) break;
    }
    return found.slice(0, MOST_TRIED);
  }

  /** Sentence by sentence; or as a list, where every item is known or needs no translation. */
  function pieces(text, depth) {
    const made = [];
    const sentences = text.split(BREAK);
    if (sentences.length > MOST_SENTENCES) return [sentences.map((each) => said(each, depth + 1)).join(" ")];
    for (let cut = sentences.length - 1; cut > 0; cut--) {
      const [head, tail] = [sentences.slice(0, cut).join(" "), sentences.slice(cut).join(" ")];
      const first = said(head, depth + 1);
      if (first !== head && (cut === 1 || !english(first))) made.push(first + (WIDE.test(first.at(-1)) ? "" : " ") + said(tail, depth + 1));
    }
    const [, largest] = /^max\((.+)\)$/su.exec(text) ?? [];
    if (largest) made.push(...pieces(largest, depth).map((each) => `max(${each.replaceAll("，", ", ")})`));
    const colon = text.indexOf(": ");
    if (colon >= 0) {
      const [head, tail] = [text.slice(0, colon), text.slice(colon + 2)];
      const both = listed([head, tail], "：", depth);
      if (both !== null) made.push(both);
      const end = said(tail, depth + 1);
      if (end !== tail && !english(end)) made.push(`${head}：${end}`); // of an offer, a file, a machine
    }
    for (const [between, comma] of LISTS) {
      const items = text.split(between);
      const all = items.length > 1 && !items.every((each) => NAME.test(each)) ? listed(items, comma, depth) : null;
      if (all !== null) made.push(all);
    }
    return made;
  }

  function listed(items, comma, depth) {
    const made = items.map((each) => said(each, depth + 1));
    const changed = made.some((each, i) => each !== items[i]);
    return changed && (comma === "；" || !made.some(english)) ? made.join(comma) : null;
  }

  return (text) => said(text);
}
