/* The inputs that most questions turn on, by tab; the rest stands in the fold below. */
import { h } from "../dom.js";
import { t } from "../words.js";
import { refresh as refreshRow, row } from "./rows.js";

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

export const namesOf = (tab) => (ROWS[tab] ?? TRAINING).map(([name]) => name);

export function build(slot, tab, options) {
  const rows = ROWS[tab] ?? TRAINING;
  slot.replaceChildren(h("legend", {}, t("Workload")), h("div", { class: "rows" }, rows.filter(([name]) => options.has(name)).map(([name, label, unit]) => row(options.get(name), label(), unit?.()))));
}

export function refresh(slot, tab, options, answer) {
  for (const name of namesOf(tab)) if (options.has(name)) refreshRow(options.get(name), answer, slot);
}
