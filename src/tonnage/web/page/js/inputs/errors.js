/* What was refused: the input that it is about, and buttons for what the message says would work. */
import { html } from "../../vendor/preact.js";
import { announceNext } from "../announce.js";
import { clusterText, machineOf } from "../machine.js";
import { change, cluster, MISCOUNTED, state } from "../state.js";
import { tr } from "../words.js";
import { inLabels } from "./labels.js";

const KINDS = [
  [/^(on: )?a cluster (may have|needs)/, "nodes"],
  [/no model is called|config given|a model is named|name a model|^no .*config|is neither a name/, "model"],
  [/accelerator or node|--on\b|cluster's text/, "on"],
  [/no optimizer is called/, "optimizer"],
  [/no training runtime is called/, "runtime"],
  [/no serving engine is called/, "engine"],
];
const OWN = ["model", "on", "nodes", "each"]; // inputs that are no options of a verb's table

/** The option that an error is about: the first that its message names which was set; else the first that it names; "" where it names none. */
export function fieldOf({ field, message }, options) {
  if (field) return field;
  for (const [pattern, name] of KINDS) if (pattern.test(message) && (OWN.includes(name) || options.has(name))) return about(name);
  return named(message, options)[0] ?? (/\b(hub|huggingface|file|folder|JSON)\b/i.test(message) ? "model" : "");
}

/** Of a message about the machine, its count that is wrong. */
function about(field) {
  return field === "nodes" && machineOf(cluster()).nodes < machineOf(cluster()).each ? "each" : field;
}

function named(message, options) {
  const words = message.match(/(?:--)?[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*/g) ?? [];
  // "context" is a word of many messages: an option as a flag, or where the message begins with it.
  const plain = words.filter((word, at) => word !== "context" || (at === 0 && message.startsWith(word)));
  const names = plain.map((word) => word.replace(/^--/, "").replaceAll("-", "_")).filter((name) => options.has(name));
  const found = [...new Set(names)];
  return [...found.filter((name) => name in state.values), ...found];
}

/** Values that the message offers: those after "Did you mean", "Nearest", "Known", "can hold", "must be". */
export function offered(message) {
  const [, meant] = /Did you mean ([^?]*)\?/.exec(message) ?? [];
  if (meant) return [...meant.matchAll(/'([^']+)'/g)].map(([, name]) => name);
  const [, near] = /(?:Nearest|Known|Use one that does|one of)[^:]*: ([^.]*)\./.exec(message) ?? [];
  if (near) return near.split(/, | or /).map((each) => each.replaceAll("'", "").trim()).filter((each) => /^[\w.+/-]+$/.test(each));
  const [, must] = /must be (\d+) to/.exec(message) ?? [];
  return must ? [must] : [];
}

/** [value, what a press does] of each repair. */
export function repairsOf({ message }, field) {
  if (!field || MISCOUNTED.includes(field)) return [];
  return offered(message).slice(0, 6).map((value) => [value, () => mend(field, value)]);
}

function mend(field, value) {
  announceNext();
  if (field !== "on") return change({ [field]: value });
  const { nodes, each } = machineOf(cluster());
  change({ on: clusterText(nodes, each, value) });
}

/** The words of an error with its repairs, below the input that it is about. */
export function Problem({ error, field, id }) {
  if (!error || error.at !== field) return null;
  return html`<p class="err" id=${id}>${inLabels(tr(error.message))} ${repairsOf(error, field).map(([value, press]) => html`<button type="button" class="btn" data-repair=${value} onClick=${press}>${value}</button>`)}</p>`;
}
