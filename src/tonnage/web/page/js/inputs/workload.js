/* The inputs that most questions turn on, by tab; the rest stands in the fold below. */
import { h } from "../dom.js";
import { t } from "../words.js";
import { refresh as refreshRow, row } from "./rows.js";

/** Targets that no option of the verb is for: the page compares the answer with them, and the tab Plan searches with them. */
const OWN = ["plan_deadline", "plan_budget"];
const own = (name) => ({ name, input: name.replace("plan_", "run_"), kind: "text", choices: [], default: "" });
const DEADLINE = [["plan_deadline", () => t("Deadline"), () => "30d, 12h"], ["plan_budget", () => t("Budget"), () => t("in USD")]];
const LEVEL = [["ttft", () => t("TTFT at most"), () => t("s or ms")], ["tpot", () => t("TPOT at most"), () => t("s or ms")]];

const TRAINING = [
  ["sequence_length", () => t("Sequence length"), () => t("tokens")],
  ["global_batch_size", () => t("Global batch size"), () => t("sequences")],
  ["micro_batch_size", () => t("Micro batch size"), () => t("sequences")],
  ["tokens", () => t("Training tokens"), () => t("tokens")],
  ["precision", () => t("Precision")],
  ["optimizer", () => t("Optimizer")],
  ["recompute", () => t("Recompute")],
  ["runtime", () => t("Runtime")],
];
const TUNING = [
  ["method", () => t("Method")],
  ["lora_rank", () => t("LoRA rank")],
  ["base_weights", () => t("Base weights")],
  ["sequence_length", () => t("Sequence length"), () => t("tokens")],
  ["micro_batch_size", () => t("Micro batch size"), () => t("sequences")],
  ["dataset_tokens", () => t("Tokens of the data"), () => t("tokens")],
  ["epochs", () => t("Epochs")],
  ["optimizer", () => t("Optimizer")],
  ["recompute", () => t("Recompute")],
  ["runtime", () => t("Runtime")],
];
const SERVING = [
  ["input_tokens", () => t("Input length"), () => t("tokens")],
  ["output_tokens", () => t("Output length"), () => t("tokens")],
  ["concurrency", () => t("Concurrent users"), () => t("users")],
  ["context", () => t("Context"), () => t("tokens")],
  ["weights", () => t("Weights")],
  ["kv_cache", () => t("KV cache")],
  ["engine", () => t("Engine")],
];
const ROWS = { train: TRAINING, tune: TUNING, serve: SERVING };
const TARGETS = { train: DEADLINE, tune: DEADLINE, serve: LEVEL };
const rowsOf = (tab) => [...(ROWS[tab] ?? TRAINING), ...(TARGETS[tab] ?? DEADLINE)];

export const namesOf = (tab) => rowsOf(tab).map(([name]) => name);

/** The option of a row, undefined where the verb has none such. */
const optionOf = (name, options) => (OWN.includes(name) ? own(name) : options.get(name));

export function build(slot, tab, options) {
  const rows = ROWS[tab] ?? TRAINING;
  const made = (listed) => listed.filter(([name]) => optionOf(name, options)).map(([name, label, unit]) => row(optionOf(name, options), label(), unit?.()));
  slot.replaceChildren(h("legend", {}, t("Workload")), h("div", { class: "rows" }, made(rows)), h("h3", { class: "aims" }, t("Targets")), h("div", { class: "rows" }, made(TARGETS[tab] ?? DEADLINE)));
}

export function refresh(slot, tab, options, answer) {
  for (const name of namesOf(tab)) if (optionOf(name, options)) refreshRow(optionOf(name, options), answer, slot);
}
