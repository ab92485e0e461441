/* Every other option of the verb, in the groups of its --help, with a box that finds one. Built when it is opened first: it is long. */
import { $, $$, h } from "../dom.js";
import { state, TUNING } from "../state.js";
import { t, tr } from "../words.js";
import { refresh as refreshRow, row } from "./rows.js";

// Of the page's own making, or another form of answer.
const LEFT_OUT = ["on", "frontier", "points", "for_my_machine", "order", "offline"];

let shown = []; // options that have a row here

export function choose(tab, options, elsewhere) {
  const out = new Set([...LEFT_OUT, ...elsewhere, ...(tab === "tune" ? [] : TUNING)]);
  // LoRA's rank is an option of serving too, with another meaning.
  if (tab === "serve") TUNING.forEach((name) => out.delete(name));
  shown = [...options.values()].filter((option) => !out.has(option.name));
}

export function build(slot) {
  const summary = h("summary", {}, h("span", {}, t("Advanced")), " ", h("small", { id: "advanced-note" }));
  slot.replaceChildren(summary);
  slot.ontoggle = () => slot.open && fill(slot);
  if (slot.open) fill(slot);
}

function fill(slot) {
  if ($(".finder", slot)) return;
  const finder = h("label", { class: "finder" }, h("span", {}, t("Find an option")), h("input", { type: "search", autocomplete: "off", oninput: ({ target }) => narrow(slot, target.value) }));
  const groups = Map.groupBy ? Map.groupBy(shown, (option) => option.group) : grouped(shown);
  slot.append(finder, ...[...groups].map(([title, options]) => h("div", { class: "group" }, h("h3", {}, tr(title)), h("div", { class: "rows" }, options.map(build1)))));
  refresh(slot, slot.answer);
}

function grouped(options) {
  const groups = new Map();
  for (const option of options) groups.set(option.group, [...(groups.get(option.group) ?? []), option]);
  return groups;
}

function build1(option) {
  const made = row(option, null, tr(option.unit));
  $(".about", made).dataset.help = `${tr(option.help)}.`;
  return made;
}

function narrow(slot, text) {
  const words = text.trim().toLowerCase().split(/[\s_-]+/).filter(Boolean);
  for (const each of $$(".row", slot)) {
    const said = `${each.dataset.row} ${$(".about", each).dataset.help}`.toLowerCase();
    each.hidden = !words.every((word) => said.includes(word));
  }
  for (const group of $$(".group", slot)) group.hidden = !$(".row:not([hidden])", group);
}

export function refresh(slot, answer) {
  slot.answer = answer;
  const set = shown.filter((option) => option.name in state.values).length;
  $("#advanced-note").textContent = set ? t("{n} set", { n: set }) : t("all at default");
  if ($(".finder", slot)) for (const option of shown) refreshRow(option, answer, slot);
}
