/* The table behind the bars: each component on each group of ranks; a row opens into the parts that make it, down to the formulas. */
import { childPath, number, path } from "../card.js";
import { fill, h, scroll } from "../dom.js";
import { basis, isUnused, name, segmentsOf } from "../marks.js";
import { fixed, gib, percent } from "../numbers.js";
import { fullestOf, groupName, groupsOf, momentOf } from "../ranks.js";
import { swatch } from "../svg.js";
import { t, tr } from "../words.js";

const MOST = 8; // groups that have a column; the bars show all
const open = new Set(); // paths of rows that are open; kept while the answer changes

export function draw(slot, answer, state) {
  if (!answer) return slot.replaceChildren();
  const { document } = answer;
  const groups = groupsOf(document);
  const full = fullestOf(groups);
  const shown = groups.length > MOST ? [full, ...groups.filter((group) => group !== full).slice(0, MOST - 1)] : groups;
  const table = { document, full, shown, alone: groups.length === 1, redraw: () => draw(slot, answer, state) };
  const body = components(table);
  slot.replaceChildren(
    scroll(
      t("Memory breakdown"),
      h("table", { class: "breakdown" }, h("caption", { class: "vh" }, t("Memory per GPU, GiB")), head(table), h("tbody", {}, body, sum(table), free(table))),
    ),
    moments(table) ?? "",
  );
}

/** Why a part of one stage may be nothing on another. */
function moments({ document, full, alone }) {
  const moment = momentOf(document);
  if (alone || !moment) return null;
  return h("p", { class: "note" }, t("Each column is at the moment when its own stage is fullest; what is not there at that moment is 0. {rank}: {moment}.", { rank: sentence(groupName(full)), moment: tr(moment) }));
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1);

const side = (table, group) => (group === table.full ? null : "opt");

function head(table) {
  const columns = table.shown.map((group) => h("th", { scope: "col", class: side(table, group) }, groupName(group, table.alone)));
  return h(
    "thead",
    {},
    h("tr", {}, h("th", { scope: "col", class: "l" }, t("Component, GiB")), columns, h("th", { scope: "col", class: "opt opt2" }, table.alone ? t("Share") : t("Share of {rank}", { rank: groupName(table.full) })), h("th", { scope: "col", class: "l" }, t("Basis"))),
  );
}

/** A row for each child of a TERM, and below it those of its own children where it is open. */
function rows(table, term, where, depth) {
  return term.children.flatMap((child, index) => (isUnused(child) ? [] : withParts(table, row(table, child, childPath(where, term, index), depth), child, childPath(where, term, index), depth)));
}

/** The components of a rank, as the bar has them. */
function components(table) {
  table.segments = new Map(table.shown.map((group) => [group, segmentsOf(group.term, path("ranks", group.index))]));
  return table.segments.get(table.full).flatMap((segment) => withParts(table, row(table, segment.term, segment.at, 0, segment), segment.term, segment.at, 0));
}

const withParts = (table, drawn, term, at, depth) => [drawn, ...(open.has(at) && term.unit === "bytes" ? rows(table, term, at, depth + 1) : [])];

/** The same component on another group of ranks. */
function component(segments, { term }) {
  const found = segments.find((each) => each.term.name === term.name);
  return found ? number(found.where, gib(found.value, 2)) : "";
}

/** `segment`: of a component, what the bar has of it. */
function row(table, child, at, depth, segment = null) {
  const top = depth === 0;
  const cells = table.shown.map((group) => h("td", { class: side(table, group) }, segment ? component(table.segments.get(group), segment) : cell(table, group, at)));
  const whole = table.full.term.value;
  const byteShare = child.unit === "bytes" && whole ? percent((segment ?? child).value / whole) : "";
  const attributes = top ? { "data-part-name": child.name } : { class: "deep" };
  return h(
    "tr",
    attributes,
    h("th", { scope: "row", class: `depth${Math.min(depth, 5)}` }, h("div", { class: "rowhead" }, opener(table, child, at), segment ? swatch(segment.pattern) : null, h("span", {}, segment?.label ?? name(child)))),
    cells,
    h("td", { class: "opt opt2" }, byteShare),
    h("td", { class: "l" }, basis(child.basis)),
  );
}

/** The button that opens a row, where there is something inside. */
function opener(table, child, at) {
  const inside = child.children.some((each) => each.unit === "bytes");
  if (!inside) return h("span", { class: "no-opener" });
  const is = open.has(at);
  const press = () => {
    if (is) open.delete(at);
    else open.add(at);
    table.redraw();
    document.querySelector(`[data-key="${CSS.escape(`open ${at}`)}"]`)?.focus();
  };
  return h("button", { type: "button", class: "opener", "aria-expanded": String(is), "aria-label": t("Parts of {name}", { name: name(child) }), "data-key": `open ${at}`, onclick: press }, is ? "▾" : "▸");
}

/** The same part on another group of ranks: by the same names. */
function cell(table, group, at) {
  const [, , ...names] = at.split("›");
  let term = group.term;
  const where = [];
  for (const piece of names) {
    const index = indexOf(term, piece);
    if (index < 0) return "";
    where.push(piece);
    term = term.children[index];
  }
  return number(path("ranks", group.index, ...where), term.unit === "bytes" ? gib(term.value, 2) : fixed(term.value, 2));
}

function indexOf(term, piece) {
  const [, plain, count] = /^(.*?)(?:#(\d+))?$/s.exec(piece);
  let left = Number(count ?? 1);
  return term.children.findIndex((child) => (child.name === piece || (child.name === plain && --left === 0)));
}

function sum(table) {
  const { band } = table.document.verdict;
  const cells = table.shown.map((group) => h("td", { class: side(table, group) }, number(path("ranks", group.index), gib(group.term.value, 2))));
  const spread = band ? h("small", {}, t("{low} to {high}", { low: gib(band[0]), high: gib(band[1]) })) : null;
  return h("tr", { class: "sum" }, h("th", { scope: "row" }, t("needed")), cells, h("td", { class: "opt opt2" }, percent(1, 0)), h("td", { class: "l" }, basis(table.full.term.basis), " ", spread));
}

function free(table) {
  const usable = table.document.verdict.usable_bytes;
  if (usable === null) return null;
  const cells = table.shown.map((group) => {
    const left = usable - group.term.value;
    const amount = number(path("page", `free ${group.index}`), gib(Math.abs(left), 2));
    return h("td", { class: side(table, group) }, left < 0 ? fill(t("short by {amount}"), { amount }) : amount);
  });
  return h("tr", { class: "sub" }, h("th", { scope: "row" }, t("free")), cells, h("td", { class: "opt opt2" }), h("td"));
}
