/* What else would fit the same cluster: precision by length. A click takes a cell over. */
import { ask } from "../api.js";
import { h, icon, scroll, section } from "../dom.js";
import { inFull } from "../machine.js";
import { counted, gib } from "../numbers.js";
import { phrase } from "../phrases.js";
import { change } from "../state.js";
import { legend } from "../svg.js";
import { t, tr } from "../words.js";
import { later, settled, shown } from "./later.js";

const KIND = { fits: "fits", tight: "tight", "not served": "fits", "does not fit": "no" };
const words = (kind) => ({ fits: t("Fits"), tight: t("Tight"), no: t("Does not fit"), unknown: t("unknown") })[kind];

const OWN = "own"; // stands for the default of an option
const PLAIN = "16 bit"; // how a base is asked for that nothing quantises

/* down: what varies from row to row; across: the length. What the inputs leave open is asked as `own`, so that the cell where the page stands is
   asked what the headline was: `values` are what the rows are, `asked` how each is asked, `here` the present one. */
function plan(answer) {
  const now = (name) => answer.document.question[name]?.value ?? null;
  const rows = (name, usual) => row(answer.question[name], now(name), usual);
  if (answer.verb === "serve") {
    const { weights, kv_cache } = answer.question;
    return { title: t("Quantisation by context"), across: "context", length: now("context"), down: { weights: row(weights, OWN, [OWN, "fp8", "awq"]), kv_cache: row(kv_cache, OWN, [OWN, "fp8"]) } };
  }
  if (!["full", "freeze", null].includes(now("method"))) {
    const bases = row(answer.question.base_weights, plain(now("base_weights")), [PLAIN, "int8", "nf4-double"]);
    return { title: t("Quantisation by sequence length"), across: "sequence_length", length: now("sequence_length"), ...(isQlora(answer) ? { more: { method: "lora" }, down: { base_weights: { ...bases, asked: bases.values } } } : { down: { base_weights: bases } }) };
  }
  return { title: t("Precision and recompute by sequence length"), across: "sequence_length", length: now("sequence_length"), down: { precision: rows("precision", ["bf16-mixed", "bf16"]), recompute: rows("recompute", ["none", "selective", "full"]) } };
}

/** A base that nothing quantises is as wide as its runtime makes it. */
const plain = (base) => (/^\d+ bit$/.test(base) ? PLAIN : base);

/** QLoRA is LoRA on a quantised base: the base is a row here, and LoRA what all rows have. */
const isQlora = ({ question: { method, base_weights } }) => method === "qlora" && base_weights !== PLAIN;

/** One axis: the usual values and the present one. */
function row(given, now, usual) {
  const present = String(given ?? now);
  const values = usual.includes(present) ? usual : [present, ...usual];
  return { values, here: values.indexOf(present), asked: values.map((value) => (value === present && given === undefined ? OWN : value)) };
}

/** Half of the length that there is, and its doubles; a context that follows from the requests cannot be shorter than they are, and one that is
    the model's own not longer. */
function columns(length, answer) {
  const from = answer.verb === "serve" ? answer.document.question.context?.from : "given";
  const least = { given: 1 / 2, model: 1 / 16 }[from] ?? 1;
  return [...new Set([0, 1, 2, 3, 4].map((power) => Math.max(1, Math.round(length * least * 2 ** power))))];
}

export function draw(slot, answer, state) {
  if (!answer) return slot.replaceChildren();
  const wanted = plan(answer);
  const heads = columns(wanted.length, answer);
  const lengths = heads.map((head) => (head === wanted.length && answer.question[wanted.across] === undefined ? OWN : head));
  const down = Object.fromEntries(Object.entries(wanted.down).map(([name, { asked }]) => [name, asked]));
  const question = { ...settled(answer), on: inFull(answer), ...wanted.more, ...down, [wanted.across]: lengths };
  if (answer.verb === "train") question.train = true;
  const key = JSON.stringify([question, wanted]); // what is asked may stay where the place in it moves
  const asked = later("matrix", key, answer.signal, async (signal) => ({ wanted, heads, ...(await ask("compare", question, signal)) }), () => draw(slot, answer, state), 350);
  section(slot, wanted.title, t("GiB needed on the fullest GPU, same cluster"), shown(asked, (made) => table(made, answer, wanted.title)));
}

function table({ wanted, heads, document }, answer, title) {
  const rows = grid(document, wanted.across);
  // Columns and rows of which nothing can be answered are no help.
  const columns = heads.map((_, at) => at).filter((at) => rows.some((cells) => cells[at].needed_bytes));
  const useful = rows.filter((cells) => cells.some((cell) => cell.needed_bytes));
  if (!useful.length) return h("p", { class: "note" }, tr(document.cells[0]?.reason ?? ""));
  const precisions = new Set(useful.map((cells) => knownOf(cells).precision));
  const body = useful.map((cells) => {
    const name = nameOf(knownOf(cells), wanted, document, precisions.size > 1);
    return h("tr", {}, h("th", { scope: "row" }, name), columns.map((at) => h("td", {}, cellButton(name, cells[at], { wanted, heads, document, answer }))));
  });
  const head = h("tr", {}, h("th", { scope: "col" }, h("span", { class: "vh" }, t("Numbers"))), columns.map((at) => h("th", { scope: "col" }, `${counted(heads[at], wanted.length)} ${t("tokens")}`)));
  return [
    scroll(t("{title}: table", { title }), h("table", { class: "matrix" }, h("caption", { class: "vh" }, title), h("thead", {}, head), h("tbody", {}, body))),
    legend([...["fits", "tight", "no"].map((kind) => [icon(kind), words(kind)]), [h("span", { class: "here-mark", "aria-hidden": "true" }), t("you are here")]]),
  ];
}

/** Of each axis the place of a cell on it: the last axis varies fastest. */
function places(document, index) {
  const found = {};
  let rest = index;
  for (const { name, values } of [...document.axes].reverse()) {
    found[name] = rest % values.length;
    rest = Math.floor(rest / values.length);
  }
  return found;
}

/** Cells row by row: those of a row are alike but in their length. */
function grid(document, across) {
  const rows = new Map();
  document.cells.forEach((cell, index) => {
    const { [across]: column, ...others } = places(document, index);
    const key = JSON.stringify(others);
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key)[column] = cell;
  });
  return [...rows.values()];
}

const knownOf = (cells) => cells.find((cell) => cell.needed_bytes);

/** What a row is, by a cell of it. Some runtimes quantise a base in another precision than they train one as it is: then each row says its own. */
function nameOf(cell, wanted, document, mixed) {
  const at = places(document, document.cells.indexOf(cell));
  const names = Object.entries(wanted.down).map(([option, { values }]) => shownValue(option, cell, values[at[option]]));
  return [...names, mixed && !wanted.down.precision ? cell.precision : null].filter(Boolean).join(t(", "));
}

function shownValue(option, cell, value) {
  if (option === "weights") return cell.weights_stored ?? cell.weights ?? t("unknown");
  if (option === "kv_cache") return t("KV {precision}", { precision: cell.kv_cache ?? value });
  if (option === "recompute") return phrase("recompute", cell.recompute ?? value);
  if (option === "base_weights") return value === PLAIN ? t("base not quantised") : t("base in {precision}", { precision: value });
  return cell[option] ?? t("unknown");
}

function cellButton(name, cell, table) {
  const { heads, wanted, document } = table;
  const kind = KIND[cell.verdict] ?? "unknown";
  const here = isHere(cell, table);
  const figure = cell.needed_bytes ? gib(cell.needed_bytes) : "?";
  const length = counted(heads[places(document, document.cells.indexOf(cell))[wanted.across]], wanted.length);
  const at = [name, length].join(t(", "));
  const told = `${at}${t(": ")}${[words(kind), cell.needed_bytes ? `${figure} GiB` : null, here ? t("you are here") : null].filter(Boolean).join(t(", "))}`;
  return h("button", {
    type: "button", class: `cell ${kind}${here ? " here" : ""}`, "data-key": `matrix ${at}`, "aria-label": told, "aria-current": here ? "true" : null,
    title: cell.reason ? tr(cell.reason) : told, onclick: () => change(taken(cell, table)),
  }, icon(kind), figure);
}

/** Where the page stands: the cell that asks for what the inputs ask for. */
function isHere(cell, { wanted, heads, document }) {
  const at = places(document, document.cells.indexOf(cell));
  return heads[at[wanted.across]] === wanted.length && Object.entries(wanted.down).every(([name, { here }]) => at[name] === here);
}

/** The inputs that a cell stands for; what is as it was stays as it was typed. Another cell than that of the answer is of what was chosen for the answer. */
function taken(cell, table) {
  const made = inputsOf(cell, table);
  if (isHere(cell, table)) return made;
  const chosen = Object.entries(table.answer.document.chosen?.change ?? {}).filter(([name]) => (made[name] ?? null) === null);
  return { ...made, ...Object.fromEntries(chosen) };
}

function inputsOf(cell, { wanted, heads, document, answer: { question } }) {
  const at = places(document, document.cells.indexOf(cell));
  const given = (name) => question[name] ?? null;
  const made = Object.fromEntries(Object.entries(wanted.down).map(([name, { asked, here }]) => [name, at[name] === here ? given(name) : own(asked[at[name]])]));
  const length = heads[at[wanted.across]];
  made[wanted.across] = length === wanted.length ? given(wanted.across) : length;
  return made.base_weights === PLAIN && given("base_weights") !== PLAIN ? { ...made, base_weights: null, ...wanted.more } : made;
}

const own = (asked) => (asked === OWN ? null : asked);
