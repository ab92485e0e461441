/* What an input is called on the page, and messages of the command line in those words. */
import { t } from "../words.js";

// A flag, a name with an underscore; a name of one word where the message begins with it.
const OPTION = /(?<![\w-])(?:--([a-z][a-z0-9-]*)|([a-z]+(?:_[a-z0-9]+)+|^[a-z]+(?= ?(?:must be|必须|应))))(?![\w-])/g;
const APART = /(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])/g; // blanks that Chinese has not

/* Inputs of the page's own: a verb has no option for them, or another of that name. */
const OWN = {
  model: () => t("Model"),
  on: () => t("Cluster"),
  nodes: () => t("Nodes"),
  each: () => t("GPUs per node"),
  plan_deadline: () => t("Deadline"),
  plan_budget: () => t("Budget"),
  plan_for: () => t("What for"),
  plan_on: () => t("Machines"),
};
const LABELS = {
  sequence_length: () => t("Sequence length"),
  global_batch_size: () => t("Global batch size"),
  micro_batch_size: () => t("Micro batch size"),
  tokens: () => t("Training tokens"),
  precision: () => t("Precision"),
  optimizer: () => t("Optimizer"),
  recompute: () => t("Recompute"),
  runtime: () => t("Runtime"),
  method: () => t("Method"),
  lora_rank: () => t("LoRA rank"),
  base_weights: () => t("Base weights"),
  dataset_tokens: () => t("Tokens of the data"),
  epochs: () => t("Epochs"),
  input_tokens: () => t("Input length"),
  output_tokens: () => t("Output length"),
  concurrency: () => t("Concurrent users"),
  context: () => t("Context"),
  weights: () => t("Weights"),
  kv_cache: () => t("KV cache"),
  engine: () => t("Engine"),
  ttft: () => t("TTFT at most"),
  tpot: () => t("TPOT at most"),
  tensor_parallel_size: () => "TP",
  pipeline_parallel_size: () => "PP",
  context_parallel_size: () => "CP",
  expert_parallel_size: () => "EP",
  data_parallel_size: () => "DP",
  replicas: () => "DP",
};
let known = new Set(); // options of the verb

export function learn(names) {
  known = new Set(names);
}

/** The label of an option's input; null where the option is shown by its own name, or not at all. */
export const labelOf = (option) => OWN[option]?.() ?? (known.has(option) ? (LABELS[option]?.() ?? null) : null);

/** A message with its options named as their inputs are; one that the page does not have stays a flag. */
export function inLabels(message, naming = labelOf) {
  const said = message.replace(OPTION, (whole, flag, plain) => {
    const option = (flag ?? plain).replaceAll("-", "_");
    return naming(option) ?? (known.has(option) ? option : whole);
  });
  return said === message ? message : said.replace(APART, "");
}
