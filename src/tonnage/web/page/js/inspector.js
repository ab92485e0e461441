/* The card of a number: where it stands, its value, how it is known, its formula, the numbers put in, what each of them is, its band, its
   source. Docked as a third column from 1240 px; below that a sheet, which Escape closes. */
import { glossary, partErrors } from "./api.js";
import { childPath, find, number } from "./card.js";
import { $, $$, h, say } from "./dom.js";
import { leafOf } from "./leaf.js";
import { basis, name } from "./marks.js";
import { human, percent, said, significant } from "./numbers.js";
import { keepCard, state } from "./state.js";
import { readable } from "./sources.js";
import { t, tr } from "./words.js";

const SHARES = new Set(["MFU", "HFU", "goodput"]); // parts of a whole, which people say in percent
let letters = new Map();
let errors = []; // of parts of the memory, where rows measure them
let opener = null;

/** Learns what the letters of formulas mean, and how far parts lie from measurements. Cards are shown without that too. */
export async function learn() {
  const [{ letters: listed }, measured] = await Promise.all([glossary(), partErrors()]);
  letters = new Map(listed.map((each) => [each.letter, each]));
  errors = measured;
}

/** Shows the card of a path; `from` is what had the focus and gets it back. */
export function open(where, from = null) {
  keepCard(where);
  opener = from;
  $("#inspector").classList.add("open");
  mark();
  drawCard();
  const found = find(where);
  if (found) say([tr(found.term.name), said(found.term.value, found.term.unit)].join(": "));
}

/** Closes the sheet; the focus goes back to the number. */
export function close() {
  const box = $("#inspector");
  if (!box.classList.contains("open")) return false;
  box.classList.remove("open");
  const back = opener?.isConnected ? opener : $(`main [data-card="${CSS.escape(state.card)}"]`);
  keepCard("");
  mark();
  drawCard();
  back?.focus();
  return true;
}

function mark() {
  for (const each of $$("[data-card]")) each.setAttribute("aria-pressed", String(each.dataset.card === state.card));
}

/** Draws the card of the state's path anew, as the answer now has it. */
export function drawCard(document) {
  if (document !== undefined) answered = document;
  const found = state.card ? find(state.card) : null;
  const shut = h("button", { type: "button", class: "btn x", "aria-label": t("Close"), onclick: close }, "×");
  $("#inspector").replaceChildren(h("div", { class: "card", tabindex: "0" }, found ? [shut, ...content(found)] : hint()));
}

let answered = null;

const hint = () => [h("h2", {}, t("Pick any underlined number")), h("p", {}, t("Its formula, its inputs and its source appear here."))];

function content({ term, trail, path: where }) {
  const [value, unit] = SHARES.has(term.name) ? [percent(term.value, 2), ""] : human(term.value, term.unit);
  const { term: leaf, path: below } = leafOf(term, where);
  return [
    h("p", { class: "path" }, trail.map(root).join(" › ")),
    h("h2", {}, name(term)),
    h("p", { class: "big" }, value, unit ? h("small", {}, ` ${unit}`) : null),
    exact(term, value, unit),
    h("p", {}, basis(leaf.basis)),
    leaf.text || leaf.children.length ? [h("h3", {}, leaf === term ? t("Formula") : t("Formula of its only part, {name}", { name: name(leaf) })), h("pre", {}, formulaOf(leaf))] : nothingIn(leaf),
    putIn(leaf),
    whereList(leaf, below),
    practiceOf(where, term),
    methodOf(leaf),
    (term.said ?? []).map(([head, text]) => [h("h3", {}, head), h("p", {}, text)]),
    bandOf(where, term),
    errorOf(where, term),
    sourcesOf(leaf).map((source, at) => [at ? null : h("h3", {}, t("Source")), h("p", { class: "source" }, linked(readable(source)))]),
  ];
}

/** Its own source, or those of its parts. */
const sourcesOf = (term) => (term.source ? [term.source] : [...new Set(term.children.map((child) => leafOf(child, "").term.source).filter(Boolean))]);

const ROOTS = { run: () => t("run"), serving: () => t("serving"), ranks: () => t("Memory per GPU"), page: () => t("verdict"), facts: () => t("Facts"), advice: () => t("Next best moves"), model: () => t("Model"), host: () => t("host"), storage: () => t("storage") };
/** What the page itself offers under a kind and a name, such as "machine: H100". */
const KINDS = {
  front: (each) => t("front: {each}", { each }),
  machine: (each) => t("machine: {each}", { each }),
  "part of the time": (each) => t("part of the time: {each}", { each }),
  plan: (each) => t("plan: {each}", { each }),
  point: (each) => t("point: {each}", { each }),
  rule: (each) => t("rule: {each}", { each }),
};

function root(name) {
  const [kind, ...rest] = name.split(": ");
  return ROOTS[name]?.() ?? (rest.length ? KINDS[kind]?.(tr(rest.join(": "))) : null) ?? tr(name);
}

/** The figure in its base unit, where what stands above is rounded. */
function exact(term, value, unit) {
  const plain = said(Number.isInteger(term.value) ? term.value : significant(term.value, 8), "");
  const text = `${Number.isInteger(term.value) ? significant(term.value) : plain} ${tr(term.unit)}`.trim();
  return text === `${value} ${unit}`.trim() ? null : h("p", { class: "exact" }, text);
}

/** A formula's own text, or how its parts are joined. */
function formulaOf(term) {
  if (term.children.length && !term.formula) return joined(term, name);
  return term.formula ? `${term.formula}: ${term.text}` : tr(term.text);
}

/** A sum of no parts. */
const nothingIn = (term) => (term.value === 0 && !term.children.length ? h("pre", {}, t("nothing of this kind is held")) : null);

const SIGNS = { sum: " + ", product: " × ", ratio: " / ", max: ", ", difference: " \u2212 " };

function joined(term, write) {
  const parts = term.children.map(write);
  const sign = SIGNS[term.combine];
  if (!sign) return tr(term.text);
  const MANY = 14;
  const all = parts.length > MANY ? [...parts.slice(0, MANY), t("{n} more", { n: parts.length - MANY })] : parts;
  return term.combine === "max" ? `max(${all.join(sign)})` : all.join(sign);
}

/** The same with numbers in place of names. */
function putIn(term) {
  const names = Object.keys(term.inputs);
  let text = "";
  if (term.children.length && SIGNS[term.combine]) text = joined(term, (child) => said(child.value, child.unit));
  else if (names.length) text = term.text.replace(/[A-Za-z_]\w*/g, (word) => (word in term.inputs ? significant(term.inputs[word], 6) : word));
  if (!text) return null;
  return [h("h3", {}, t("With the numbers put in")), h("pre", {}, `${text}\n= ${said(term.value, term.unit)}`)];
}

/** What each letter, or each part, is; parts open their own cards. */
function whereList(term, where) {
  const inputs = Object.entries(term.inputs).map(([letter, value]) => {
    const symbol = letters.get(letter);
    const meaning = symbol ? h("small", {}, tr(symbol.meaning)) : null;
    return [[h("code", {}, letter), meaning], said(value, symbol?.unit ?? "")];
  });
  const parts = term.children.map((child, i) => [[name(child), madeOf(leafOf(child, "").term)], [number(childPath(where, term, i), said(child.value, child.unit)), shareOf(child, term)]]);
  const all = [...inputs, ...parts];
  return all.length ? [h("h3", {}, t("Where")), h("dl", {}, all.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))] : null;
}

/** The formula of a part, below its name. */
function madeOf(term) {
  const text = term.formula ? term.text : term.children.length > 1 ? joined(term, name) : "";
  return text.length > 1 ? h("small", { class: "made" }, h("code", {}, text.length > MOST ? `${text.slice(0, MOST)}…` : text)) : null;
}
const MOST = 160; // letters of the formula of a part: its own card has all of it

/** How much of a sum a part is. */
const shareOf = (child, term) => (term.combine === "sum" && term.value && child.unit === term.unit && term.children.length > 1 ? h("small", {}, percent(child.value / term.value)) : null);

/* ---- in practice ---- */

const isMemory = (where, term) => where === "memory" || (/^ranks›\d+$/.test(where) && term.value === answered?.memory?.value);

/** The part of the memory that a path is, on the fullest rank or of all; "" of anything else. */
const partOf = (where) => /^(?:memory|ranks›\d+)›([^›]+)$/.exec(where)?.[1] ?? "";

/** What one more of what the document has slopes of adds. */
function practiceOf(where, term) {
  const { slopes, question } = answered ?? {};
  if (!slopes) return null;
  const serves = Boolean(answered.serving);
  if (!isMemory(where, term) && partOf(where) !== (serves ? "kv cache" : "activations")) return null;
  const [each, token] = [small(slopes.bytes_per_sequence ?? 0), small(slopes.bytes_per_token ?? 0)];
  const lines = serves
    ? [slopes.bytes_per_sequence ? t("One more user of {length} tokens adds {size} on each GPU.", { length: significant(lengthOf(question)), size: each }) : null, slopes.bytes_per_token ? t("One more token of context adds {size} for each user.", { size: token }) : null]
    : [slopes.bytes_per_sequence ? t("One more sequence in a micro-batch adds {size} to the memory of the fullest GPU.", { size: each }) : null, slopes.bytes_per_token ? t("One more token in each sequence adds {size}.", { size: token }) : null];
  const told = lines.filter(Boolean);
  return told.length ? [h("h3", {}, t("In practice")), told.map((line) => h("p", {}, line))] : null;
}

const MIB = 2 ** 20;
/** Bytes that are few beside the memory of a GPU. */
const small = (bytes) => (bytes >= MIB && bytes < 1024 * MIB ? `${significant(bytes / MIB, 3)} MiB` : said(bytes, "bytes"));

/** The tokens that a served request holds at its end. */
const lengthOf = (question) => question.context?.value ?? 0;

/** How far this part lies from published measurements; where nobody measured it by itself, that. */
function errorOf(where, term) {
  const verb = answered?.serving ? "serve" : "train";
  const part = partOf(where) || (where.startsWith("memory›") || where.startsWith("ranks›") ? term.name : "");
  if (!part || term.unit !== "bytes") return null;
  const runtime = answered.question?.[verb === "serve" ? "engine" : "runtime"]?.value;
  const found = errors.find((each) => each.verb === verb && each.part === part && each.runtime === runtime);
  const words = found
    ? t("± {share}: nine in ten of {n} measurements of {runtime}; half lie within {median}.", { share: share(found.p90), n: found.rows, runtime, median: share(found.median) })
    : t("No measured rows for this part.");
  return found || partOf(where) ? [h("h3", {}, t("Error of this part")), h("p", {}, words)] : null;
}

/** A small share in percent, with figures that matter. */
const share = (value) => `${significant(100 * value, 2)} %`;

/** A figure that a procedure makes, not a formula: which one, and of what. */
function methodOf(term) {
  if (!term.method) return null;
  const rows = Object.entries(term.method.parameters ?? {}).map(([name, value]) => [h("dt", {}, h("code", {}, name)), h("dd", {}, typeof value === "number" ? significant(value) : String(value))]);
  return [h("h3", {}, t("Procedure")), h("p", {}, tr(term.method.procedure ?? "")), h("dl", {}, rows)];
}

/** Bands that the answer states, by the path of their figure. */
function bandOf(where, term) {
  if (!answered) return null;
  const bands = { memory: answered.verdict?.band, step_time: answered.run?.step_time_band, "serving›ttft_seconds": answered.serving?.ttft_band, "serving›tpot_seconds": answered.serving?.tpot_band };
  const fullest = where.startsWith("ranks›") && where.split("›").length === 2 && term.value === answered.memory?.value;
  const band = bands[where] ?? (fullest ? answered.verdict.band : null);
  if (!band) return null;
  const why = where === "memory" || fullest ? answered.question.error_band?.why : null;
  return [h("h3", {}, t("Error band")), h("p", {}, t("{low} to {high}", { low: said(band[0], term.unit), high: said(band[1], term.unit) }), why ? [h("br"), h("small", {}, tr(why))] : null)];
}

/** Addresses in a source are links; nothing is fetched from them. */
function linked(text) {
  return text.split(/(https?:\/\/[^\s;,)]+)/).map((piece) => (/^https?:/.test(piece) ? h("a", { href: piece, rel: "noreferrer noopener", target: "_blank" }, piece) : piece));
}
