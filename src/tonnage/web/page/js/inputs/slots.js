/* The question as a sentence: which slots it has on a tab, what each says, and the inputs behind it. */
import { compact, counted, fixed } from "../numbers.js";
import { state } from "../state.js";
import { targetOf } from "../targets.js";
import { t, tr } from "../words.js";
import { clusterShort } from "./cluster.js";
import { modelWords } from "./model.js";

const DEADLINE = ["plan_deadline", "plan_budget"];
/* slot -> its inputs, by tab; model and machine have boxes of their own. */
const FIELDS = {
  serve: { model: [], weights: ["weights", "kv_cache", "engine"], users: ["concurrency"], lengths: ["input_tokens", "output_tokens", "context"], machine: [], targets: ["ttft", "tpot"] },
  train: { model: [], precision: ["precision", "optimizer", "recompute", "runtime"], tokens: ["tokens"], length: ["sequence_length"], batch: ["global_batch_size", "micro_batch_size"], machine: [], targets: DEADLINE },
  tune: { model: [], method: ["method", "lora_rank", "base_weights", "optimizer", "recompute", "runtime"], data: ["dataset_tokens", "epochs"], length: ["sequence_length"], batch: ["micro_batch_size", "global_batch_size"], machine: [], targets: DEADLINE },
  plan: { purpose: [], model: [], places: ["plan_on"] },
  rules: { model: [] },
  compare: {},
};
/** Values that are often asked for, as buttons below an input. */
export const PICKS = { concurrency: ["1", "16", "64", "256"], sequence_length: ["4k", "8k", "32k", "128k"], tokens: ["100B", "1T", "15T"], dataset_tokens: ["10M", "100M", "1B"], plan_deadline: ["30d", "90d", "365d"] };

/** Names of the slots of a tab, in the order of its inputs. */
export const slotsOf = (tab) => Object.keys(FIELDS[tab]);
export const fieldsOf = (tab, slot) => FIELDS[tab][slot] ?? [];
/** The slot that has an input; undefined where it stands among all settings. */
export function slotOf(tab, field) {
  const own = { model: "model", on: "machine", nodes: "machine", each: "machine" }[field];
  return own && own in FIELDS[tab] ? own : slotsOf(tab).find((slot) => FIELDS[tab][slot].includes(field));
}

const SENTENCES = {
  serve: () => t("Serve {model} ({weights}) to {users} of {lengths} on {machine} within {targets}"),
  train: () => t("Train {model} ({precision}) on {tokens} in sequences of {length}, batch {batch}, on {machine}, {targets}"),
  tune: () => t("Fine-tune {model} with {method} on {data} in sequences of {length}, batch {batch}, on {machine}, {targets}"),
  plan: () => t("Plan {purpose} of {model} on any of {places}"),
  rules: () => t("Rules of thumb, beside the exact figures of {model}"),
};

/** The sentence of a tab, its slots as {names}. */
export const sentenceOf = (tab) => SENTENCES[tab]?.() ?? "";

const number = (value) => (/^\d+$/.test(String(value)) ? fixed(Number(value)) : String(value));

/** {text, set} of a slot: what it says, and whether somebody said so. `used`: the settings of the answer. */
export function saidOf(slot, used) {
  const at = (name) => state.values[name] ?? used?.[name]?.value ?? null;
  const isSet = (...names) => names.some((name) => name in state.values);
  const one = (name, write, otherwise) => ({ text: at(name) === null ? otherwise : write(at(name)), set: isSet(name) });
  const SAYS = {
    model: () => ({ text: state.values.model ? modelWords(state.values.model) : t("a model"), set: isSet("model") }),
    machine: () => ({ text: clusterShort(), set: isSet("on", "nodes", "each") }),
    weights: () => one("weights", tr, t("default weights")),
    precision: () => one("precision", tr, t("default precision")),
    users: () => one("concurrency", (users) => (Number(users) === 1 ? t("{users} user", { users: 1 }) : t("{users} users", { users: number(users) })), t("any users")),
    lengths: () => ({ text: lengths(at), set: isSet("input_tokens", "output_tokens", "context") }),
    tokens: () => one("tokens", (tokens) => t("{n} tokens", { n: written(tokens) }), t("any number of tokens")),
    data: () => one("dataset_tokens", (tokens) => t("{n} tokens", { n: written(tokens) }), t("any number of tokens")),
    length: () => one("sequence_length", (length) => number(length), t("default length")),
    batch: () => one(at("global_batch_size") === null ? "micro_batch_size" : "global_batch_size", number, t("default size")),
    method: () => ({ text: method(at), set: isSet("method", "lora_rank") }),
    targets: () => targets(),
    purpose: () => ({ text: state.values.plan_for === "serve" ? t("the serving") : t("the training"), set: isSet("plan_for") }),
    places: () => ({ text: state.values.plan_on?.replace(/,\s*/g, ", ") ?? clusterShort().replace(/^(\d[\d,]*\s×\s)+/, ""), set: isSet("plan_on") }),
  };
  return SAYS[slot]();
}

const written = (value) => (/^\d+$/.test(String(value)) ? compact(Number(value)) : String(value));

function lengths(at) {
  const [input, output, context] = ["input_tokens", "output_tokens", "context"].map(at);
  if (input !== null || output !== null) return t("{input} in / {output} out", { input: number(input ?? 0), output: number(output ?? 0) });
  return context === null ? t("any length") : t("{n} tokens", { n: /^\d+$/.test(context) ? counted(Number(context), Number(context)) : context });
}

const METHODS = { full: () => t("full training"), lora: () => "LoRA", qlora: () => "QLoRA", dora: () => "DoRA" };

function method(at) {
  const name = at("method") ?? "lora";
  const rank = at("lora_rank");
  const words = METHODS[name]?.() ?? name;
  return rank && /lora|dora/.test(name) ? t("{method}, rank {n}", { method: words, n: rank }) : words;
}

function targets() {
  const of = (name, words) => (name in state.values ? words(targetOf(name)?.text.replace(/\.0+(?=\D)/, "") ?? state.values[name]) : null);
  const text = state.tab === "serve"
    ? [of("ttft", (limit) => t("TTFT {limit}", { limit })), of("tpot", (limit) => t("TPOT {limit}", { limit }))].filter(Boolean).join(t(", ")) || t("any time")
    : [of("plan_deadline", (limit) => t("within {limit}", { limit })), of("plan_budget", (limit) => t("for at most {limit}", { limit }))].filter(Boolean).join(t(", ")) || t("no deadline or budget");
  return { text, set: fieldsOf(state.tab, "targets").some((name) => name in state.values) };
}

