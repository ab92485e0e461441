/* The card of a number: where it stands, its value, how it is known, its formula, the numbers put in, what each of them is, its band, its
   source. Docked as a third column from 1240 px; below that a sheet, which Escape closes. */
import { glossary } from "./api.js";
import { childPath, find, number } from "./card.js";
import { $, $$, h, say } from "./dom.js";
import { basis } from "./marks.js";
import { human, percent, said, significant } from "./numbers.js";
import { keepCard, state } from "./state.js";
import { readable } from "./sources.js";
import { t, tr } from "./words.js";

const SHARES = new Set(["MFU", "HFU", "goodput"]); // parts of a whole, which people say in percent
let letters = new Map();
let opener = null;

/** Learns what the letters of formulas mean. Cards are shown without that too. */
export async function learn() {
  const { letters: listed } = await glossary();
  letters = new Map(listed.map((each) => [each.letter, each]));
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
  return [
    h("p", { class: "path" }, trail.map(root).join(" › ")),
    h("h2", {}, tr(term.name)),
    h("p", { class: "big" }, value, unit ? h("small", {}, ` ${unit}`) : null),
    exact(term, value, unit),
    h("p", {}, basis(term.basis)),
    term.text ? [h("h3", {}, t("Formula")), h("pre", {}, formulaOf(term))] : nothingIn(term),
    putIn(term),
    whereList(term, where),
    methodOf(term),
    bandOf(where, term),
    term.source ? [h("h3", {}, t("Source")), h("p", { class: "source" }, linked(readable(term.source)))] : null,
  ];
}

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
  if (term.children.length && !term.formula) return joined(term, (child) => tr(child.name));
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
  const parts = term.children.map((child, i) => [tr(child.name), number(childPath(where, term, i), said(child.value, child.unit))]);
  const all = [...inputs, ...parts];
  return all.length ? [h("h3", {}, t("Where")), h("dl", {}, all.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))] : null;
}

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
