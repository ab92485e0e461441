/* The model: any name, id, address, or the text of a config.json; and what is known of it. */
import { models } from "../api.js";
import { figure, number, offer, path } from "../card.js";
import { combobox, matching } from "../combobox.js";
import { $, h } from "../dom.js";
import { counted, fixed, short } from "../numbers.js";
import { isPasted } from "../pasted.js";
import { change, state } from "../state.js";
import { t, tr } from "../words.js";

const PAUSE = 300; // ms: a name that is still being typed is not looked for on hubs
let known = new Map();
let entries = []; // what the list searches
let timer = 0;

export async function learn() {
  known = new Map((await models()).models.map((each) => [each.name, each]));
  const newest = [...known.values()].sort((one, other) => (other.released ?? "").localeCompare(one.released ?? ""));
  entries = newest.map((each) => ({ name: each.name, words: `${each.name} ${each.hub ?? ""}`.toLowerCase(), row: each }));
}

export function build(slot) {
  const { field, list } = combobox({ id: "model", name: "model", label: t("Models"), find, take, enter, "aria-describedby": "model-help", oninput: typed, onchange: settled });
  slot.replaceChildren(
    h("legend", {}, t("Model")),
    h("label", { class: "vh", for: "model" }, t("Model name, URL, path or pasted config")),
    h("div", { class: "combo" }, field, list),
    h("p", { class: "help", id: "model-help" }, t("Name, Hugging Face URL, folder, GGUF file, or a pasted config.json")),
    h("p", { class: "err", id: "model-err", hidden: true }),
    h("div", { "data-slot": "model" }),
  );
}

/** Models that a text may mean, with size, context and kind; none for a text that is no name. */
function find(text) {
  if (!text || isPasted(text) || known.has(text.toLowerCase())) return [];
  return matching(entries, text).map(({ name, row }) => ({ name, about: [t("{n} parameters", { n: short(row.parameters) }), t("context {n}", { n: counted(row.context, row.context) }), kindOf(row)].join(" · ") }));
}

const kindOf = (row) => (row.experts ? t("mixture of experts, {n} active", { n: short(row.active_parameters) }) : t("dense"));

function take(name) {
  clearTimeout(timer);
  if (name !== (state.values.model ?? "")) change({ model: name });
}

/** Enter takes the first result of a partial name; an id, a path or an address is taken as it is. */
function enter(text, first) {
  const name = first && !/[/\\:.]/.test(text.replace(/\d\.\d/g, "")) ? first : text;
  $("#model").value = name;
  take(name);
}

function typed({ target }) {
  clearTimeout(timer);
  const text = target.value.trim();
  // What is whole already is asked at once: a name of the catalogue, a pasted config, nothing.
  if (known.has(text.toLowerCase()) || isPasted(text) || text === "") return settled({ target });
  // A partial name is not asked, as it is no model yet: the list shows what it may become.
  if (!text.includes("/") && matching(entries, text).length) return;
  if (text.includes("/") || text.includes(".")) timer = setTimeout(() => settled({ target }), PAUSE);
}

function settled({ target }) {
  clearTimeout(timer);
  const text = target.value.trim();
  if (text !== (state.values.model ?? "")) change({ model: text });
}

export function refresh(answer) {
  const input = $("#model");
  if (input !== document.activeElement) input.value = state.values.model ?? "";
  const facts = answer && state.values.model ? resolved(answer.document) : [];
  $('[data-slot="model"]').replaceChildren(...facts);
}

function resolved({ question }) {
  const name = String(question.model?.value ?? "");
  const row = known.get(name);
  const parameters = question.parameters;
  if (!parameters) return [];
  offer("model", { parameters: figure(t("parameters"), parameters.value, "parameters", { source: [question.model?.why, parameters.why].filter(Boolean).join("; ") }) });
  const title = isPasted(state.values.model) ? t("pasted config.json") : (row?.hub?.split("/").at(-1) ?? name);
  const kind = row ? kindOf(row) : "";
  return [
    h(
      "div",
      { class: "resolved" },
      h("p", {}, h("b", {}, title), kind ? ` · ${kind}` : null),
      h("p", {}, number(path("model", "parameters"), fixed(parameters.value)), " ", t("parameters")),
      h("small", {}, [row ? t("{layers} layers, context {context}", { layers: row.layers, context: fixed(row.context) }) : null, tr(question.model?.why ?? ""), tr(parameters.why ?? "")].filter(Boolean).join(" · ")),
    ),
  ];
}
