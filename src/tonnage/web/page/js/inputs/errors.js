/* What was refused, under the input that the message names, with buttons for what the message says would work. */
import { $, $$, h } from "../dom.js";
import { change, cluster, MISCOUNTED, state } from "../state.js";
import { machineOf, clusterText } from "../machine.js";
import { tr } from "../words.js";
import { inLabels, labelOf } from "./labels.js";

/** Shows an error under its field, or none. Returns the field's name, "" where the message names none. */
export function show(error, options) {
  for (const place of $$(".err")) {
    place.hidden = true;
    place.replaceChildren();
  }
  for (const input of $$('#form [aria-invalid="true"]')) input.removeAttribute("aria-invalid");
  if (!error) return "";
  const field = error.field || fieldOf(error.message, options);
  const input = inputOf(field);
  const place = placeOf(field, input);
  if (!place) return "";
  place.hidden = false;
  place.replaceChildren(inLabels(tr(error.message)), h("br"), ...repairs(error.message, field));
  input?.setAttribute("aria-invalid", "true");
  if (input && !(input.getAttribute("aria-describedby") ?? "").split(" ").includes(place.id)) {
    input.setAttribute("aria-describedby", `${input.getAttribute("aria-describedby") ?? ""} ${place.id}`.trim());
  }
  return field;
}

const KINDS = [
  [/^(on: )?a cluster (may have|needs)/, "nodes"],
  [/no model is called|config given|a model is named|name a model|^no .*config|is neither a name/, "model"],
  [/accelerator or node|--on\b|cluster's text/, "on"],
  [/no optimizer is called/, "optimizer"],
  [/no training runtime is called/, "runtime"],
  [/no serving engine is called/, "engine"],
];

/** The option that a message is about: the first that it names which was set; else the first that it names. */
function fieldOf(message, options) {
  for (const [pattern, field] of KINDS) if (pattern.test(message) && (field in OWN || options.has(field))) return about(field);
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

// Inputs that are no rows of options: each with its own, and the place of its messages.
const OWN = { model: ["#model", "#model-err"], on: ["#machine", "#machine-err"], nodes: ["#nodes", "#counts-err"], each: ["#each", "#counts-err"] };

const inputOf = (field) => $(OWN[field]?.[0] ?? `#in-${CSS.escape(field)}`);

function placeOf(field, input) {
  if (field in OWN) return $(OWN[field][1]);
  if (!input) return null;
  return document.getElementById(`in-${field}-err`) ?? $("#parallel-err");
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

function repairs(message, field) {
  return offered(message)
    .slice(0, MISCOUNTED.includes(field) ? 0 : 6)
    .map((value) => h("button", { type: "button", class: "btn", "data-repair": value, onclick: () => mend(field, value) }, value));
}

function mend(field, value) {
  if (field === "on") {
    const { nodes, each } = machineOf(cluster());
    return change({ on: clusterText(nodes, each, value) });
  }
  // The input that has the focus is left alone by what is drawn next: it is written here.
  const input = inputOf(field);
  if (input) input.value = value;
  change({ [field]: value });
  input?.focus();
}

/** The words of a field, as they stand beside its input. */
export const wordsOf = (field) => labelOf(field) ?? field;
