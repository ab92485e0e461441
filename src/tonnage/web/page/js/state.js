/* What the page shows, and nothing else: a tab, the inputs that were set, the view of the answer that is open, the open card. All of it stands in the URL's fragment, so that
   a copied link shows the same. Language and theme are the reader's own, and stay on the reader's machine. */
import { pack, unpack } from "./packing.js";
import { configOf, isPasted } from "./pasted.js";

export const TABS = ["serve", "train", "tune", "plan", "compare", "rules"];
/** The verb whose answer a tab shows. The parts of plan and rules ask for themselves; compare shows what was pinned. */
export const VERB = { train: "train", tune: "train", serve: "serve", plan: null, compare: null, rules: null };
/** The views of an answer: one is open. */
export const VIEWS = ["memory", "time", "cost", "options", "sure"];
/** Options of training that belong to the tab that tunes. */
export const TUNING = ["method", "lora_rank", "lora_targets", "lora_dropout", "base_weights", "upcast_base", "trainable_layers"];
const CLUSTER = "8xH100-SXM-80GB";
const METHOD = "lora";
/** What was typed into the two counts of the cluster and is no count: kept until the cluster is another one. */
export const MISCOUNTED = ["nodes", "each"];

/** `values`: option name -> text, as it is typed; only what was set. `model` may be the text of a config.json. */
export const state = { tab: "train", values: {}, card: "", view: VIEWS[0] };

/** The question that a page without one opens on. */
export const START = {
  tab: "serve",
  values: { model: "llama-3.1-70b", on: CLUSTER, concurrency: "64", input_tokens: "1024", output_tokens: "1024", ttft: "2s", tpot: "50ms" },
};
let untouched = false;
/** Whether nobody has asked anything yet: the page shows its own example. */
export const isUntouched = () => untouched;

const past = [];
const listeners = [];
let last = { name: "", at: 0 };

export const onChange = (listener) => listeners.push(listener);
export const canUndo = () => past.length > 0;

function changed() {
  untouched = false;
  write();
  for (const listener of listeners) listener();
}

/** Sets inputs; an empty text or null takes one back to its default. What is typed into one input without a pause is one step to undo. */
export function change(values, tab = state.tab) {
  const name = Object.keys(values).join();
  const typing = name === last.name && tab === state.tab && Date.now() - last.at < 1500;
  if (!typing) past.push({ tab: state.tab, values: { ...state.values } });
  if (past.length > 200) past.shift();
  last = { name, at: Date.now() };
  if ("on" in values) values = { ...Object.fromEntries(MISCOUNTED.map((each) => [each, null])), ...values };
  for (const [key, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") delete state.values[key];
    else state.values[key] = String(value);
  }
  state.tab = tab;
  changed();
}

export function undo() {
  const before = past.pop();
  if (!before) return false;
  Object.assign(state, before);
  last = { name: "", at: 0 };
  changed();
  return true;
}

/** Another tab: the inputs stay. */
export function turn(tab) {
  if (tab === state.tab || !TABS.includes(tab)) return;
  state.tab = tab;
  changed();
}

/** All inputs at once, as if a link with them had been opened: one step to undo. */
export function restore(tab, values) {
  past.push({ tab: state.tab, values: { ...state.values } });
  last = { name: "", at: 0 };
  Object.assign(state, { tab, values: { ...values } });
  changed();
}

/** Remembers the open card; nothing is asked again. */
export function keepCard(path) {
  state.card = path;
  write();
}

/** Opens another view of the answer; nothing is asked again. */
export function keepView(view) {
  state.view = view;
  write();
}

/** What the picker shows before anybody chose. */
export const cluster = () => state.values.on ?? CLUSTER;

/** The question that the inputs ask of a tab's verb. `known`: names of its options. Throws Refused where a pasted config is no JSON. */
export function question(tab, known) {
  const asked = { model: state.values.model, on: cluster() };
  if (asked.model && isPasted(asked.model)) asked.model = configOf(asked.model);
  for (const [name, text] of Object.entries(state.values)) {
    if (name in asked || !known.has(name) || (tab !== "tune" && TUNING.includes(name))) continue;
    asked[name] = text === "true" ? true : text === "false" ? false : text;
  }
  if (tab === "tune") asked.method ??= METHOD;
  return asked;
}

/* ---- the fragment ---- */
let writing = 0;

async function write() {
  const turnOf = ++writing;
  const parts = new URLSearchParams({ tab: state.tab });
  for (const [name, text] of Object.entries(state.values)) {
    if (name === "model" && text.length > 200) parts.set("config", await pack(text));
    else parts.set(name, text);
  }
  if (state.view !== VIEWS[0]) parts.set("view", state.view);
  if (state.card) parts.set("card", state.card);
  // A pasted config takes a moment to pack: what was typed since has written already.
  if (turnOf === writing) history.replaceState(null, "", `#${parts}`);
}

/** Reads the fragment into the state. */
export async function read(fragment) {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const values = {};
  for (const [name, text] of parts) {
    if (name === "config") values.model = await unpack(text);
    else if (!["tab", "view", "card", "lang", "theme"].includes(name) && /^[a-z][a-z0-9_]*$/.test(name)) values[name] = text;
  }
  state.tab = TABS.includes(parts.get("tab")) ? parts.get("tab") : "train";
  state.values = values;
  untouched = !parts.has("tab") && !Object.keys(values).length;
  if (untouched) Object.assign(state, { tab: START.tab, values: { ...START.values } });
  state.view = VIEWS.includes(parts.get("view")) ? parts.get("view") : VIEWS[0];
  state.card = parts.get("card") ?? "";
  return parts;
}

/** As if another link had been opened: everything is read and asked anew. */
export async function follow(fragment) {
  past.push({ tab: state.tab, values: { ...state.values } });
  last = { name: "", at: 0 };
  await read(fragment);
  for (const listener of listeners) listener();
}
