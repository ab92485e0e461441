/* The model: any name, id, address, or the text of a config.json; and what is known of it. */
import { html } from "../../vendor/preact.js";
import { models } from "../api.js";
import { figure, offer, path } from "../card.js";
import { Figure } from "../components.js";
import { counted, fixed, short } from "../numbers.js";
import { isPasted } from "../pasted.js";
import { change, state } from "../state.js";
import { t, tr } from "../words.js";
import { Combobox, matching } from "./combobox.js";
import { Problem } from "./errors.js";

const PAUSE = 300; // ms: a name that is still being typed is not looked for on hubs
let known = new Map();
let entries = []; // what the list searches
let timer = 0;

export async function learn() {
  known = new Map((await models()).models.map((each) => [each.name, each]));
  const newest = [...known.values()].sort((one, other) => (other.released ?? "").localeCompare(one.released ?? ""));
  entries = newest.map((each) => ({ name: each.name, words: `${each.name} ${each.hub ?? ""}`.toLowerCase(), row: each }));
}

const kindOf = (row) => (row.experts ? t("mixture of experts, {n} active", { n: short(row.active_parameters) }) : t("dense"));
const cellsOf = (row) => [t("{n} parameters", { n: short(row.parameters) }), t("context {n}", { n: counted(row.context, row.context) }), row.experts ? t("{n} active", { n: short(row.active_parameters) }) : t("dense")];

/** Models that a text may mean, with size, context and kind; none for a text that is no name. Before anything is typed the newest. */
function find(text, standing) {
  if (standing) return entries.slice(0, 8).map(({ name, row }) => ({ name, cells: cellsOf(row), here: name === state.values.model }));
  if (!text.trim() || isPasted(text) || known.has(text.trim().toLowerCase())) return [];
  return matching(entries, text).map(({ name, row }) => ({ name, cells: cellsOf(row) }));
}

function set(name) {
  clearTimeout(timer);
  if (name !== (state.values.model ?? "")) change({ model: name });
}

function typed(text) {
  clearTimeout(timer);
  // What is whole already is asked at once: a name of the catalogue, a pasted config, nothing.
  if (known.has(text.toLowerCase()) || isPasted(text) || text === "") return set(text);
  // A partial name is not asked, as it is no model yet: the list shows what it may become.
  if (!text.includes("/") && matching(entries, text).length) return;
  if (text.includes("/") || text.includes(".")) timer = setTimeout(() => set(text), PAUSE);
}

/** The input with its list. `done`: called when a model was taken. */
export function ModelBox({ error, done }) {
  const take = (name) => {
    set(name);
    done();
  };
  /* Enter takes the first result of a partial name; an id, a path or an address is taken as it is. */
  const enter = (text, first) => (text === null ? done() : take(first && !/[/\\:.]/.test(text.replace(/\d\.\d/g, "")) ? first : text));
  const wrong = error?.at === "model";
  return html`<${Combobox} id="model" label=${t("Model name, URL, path or pasted config")} value=${state.values.model ?? ""} find=${find} take=${take} enter=${enter} typed=${typed} left=${set} wrong=${wrong} described=${wrong ? "model-help model-err" : "model-help"} />
    <${Problem} error=${error} field="model" id="model-err" />
    <p class="help" id="model-help">${t("Name, Hugging Face URL, folder, GGUF file, or a pasted config.json")}</p>`;
}

const rowOf = (name) => known.get(String(name));

/** What the model is called where it is shown. */
export function modelWords(name) {
  if (isPasted(name)) return t("pasted config.json");
  return rowOf(name)?.hub?.split("/").at(-1) ?? name;
}

/** What is known of the answer's model, in a line. */
export function Resolved({ document }) {
  const { model, parameters } = document.question;
  if (!parameters) return null;
  offer("model", { parameters: figure(t("parameters"), parameters.value, "parameters", { source: [model?.why, parameters.why].filter(Boolean).join("; ") }) });
  const row = rowOf(model?.value ?? "");
  const more = [row ? t("{layers} layers, context {context}", { layers: row.layers, context: fixed(row.context) }) : null, row ? kindOf(row) : tr(parameters.why ?? "")].filter(Boolean);
  return html`<span title=${[tr(model?.why ?? ""), tr(parameters.why ?? "")].filter(Boolean).join(" · ")}><b>${modelWords(isPasted(state.values.model ?? "") ? state.values.model : String(model?.value ?? ""))}</b> <${Figure} where=${path("model", "parameters")}>${fixed(parameters.value)}<//> ${t("parameters")}${more.map((each) => t(", {more}", { more: each }))}</span>`;
}
