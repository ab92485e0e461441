/* Settings in plain words: what a change or a choice is called where no input stands beside it. */
import { labelOf } from "./inputs/labels.js";
import { machineOf } from "./machine.js";
import { fixed, significant } from "./numbers.js";
import { t } from "./words.js";

const count = (value) => (Number.isFinite(Number(value)) ? fixed(Number(value)) : String(value));

/** "8 × 8 × H100-SXM-80GB" of a cluster's text. */
export function machineWords(on) {
  const { nodes, each, name, counted } = machineOf(String(on));
  if (!counted) return name;
  return [...(nodes > 1 ? [fixed(nodes)] : []), fixed(each), name].join(" × ");
}

const PHRASES = {
  recompute: (value) => ({ none: t("no recomputation"), full: t("full recomputation"), selective: t("selective recomputation") })[value] ?? t("recomputation of {parts}", { parts: value }),
  liger: (value) => (value ? t("Liger kernels") : t("no Liger kernels")),
  loss: (value) => (value === "full" ? t("loss over all logits at once") : t("{kind} loss", { kind: value })),
  attention: (value) => (value === "flash" ? "FlashAttention" : t("{kind} attention", { kind: value })),
  sequence_parallel: (value) => (value ? t("sequence parallelism") : t("no sequence parallelism")),
  zero_stage: (value) => `ZeRO-${value}`,
  tensor_parallel_size: (value) => t("tensor parallelism {n}", { n: count(value) }),
  pipeline_parallel_size: (value) => (Number(value) === 1 ? t("no pipeline parallelism") : t("{n} pipeline stages", { n: count(value) })),
  context_parallel_size: (value) => t("context parallelism {n}", { n: count(value) }),
  expert_parallel_size: (value) => t("expert parallelism {n}", { n: count(value) }),
  data_parallel_size: (value) => t("data parallelism {n}", { n: count(value) }),
  micro_batch_size: (value) => t("a micro batch of {n}", { n: count(value) }),
  num_microbatches: (value) => t("{n} micro-batches", { n: count(value) }),
  global_batch_size: (value) => t("a global batch of {n}", { n: count(value) }),
  sequence_length: (value) => t("sequences of {n} tokens", { n: count(value) }),
  context: (value) => t("a context of {n} tokens", { n: count(value) }),
  concurrency: (value) => t("{n} concurrent users", { n: count(value) }),
  precision: (value) => t("{type} training", { type: value }),
  optimizer: (value) => t("optimizer {name}", { name: value }),
  offload_optimizer: (value) => (value === "none" ? t("optimizer states on the GPU") : t("optimizer states in {place}", { place: placeOf(value) })),
  offload_parameters: (value) => (value === "none" ? t("weights on the GPU") : t("weights in {place}", { place: placeOf(value) })),
  offload_activations: (value) => (value === "none" ? t("activations on the GPU") : t("activations in {place}", { place: placeOf(value) })),
  method: (value) => ({ full: t("full training"), lora: "LoRA", qlora: "QLoRA" })[value] ?? t("method {name}", { name: value }),
  lora_rank: (value) => t("LoRA rank {n}", { n: count(value) }),
  runtime: (value) => t("runtime {name}", { name: value }),
  model_code: (value) => t("model code of {name}", { name: value }),
  expandable_segments: (value) => (value ? t("expandable segments of the allocator") : t("no expandable segments")),
  on: (value) => t("on {machine}", { machine: machineWords(value) }),
  weights: (value) => t("weights in {type}", { type: value }),
  kv_cache: (value) => t("KV cache in {type}", { type: value }),
  max_num_seqs: (value) => t("at most {n} running requests", { n: count(value) }),
  max_num_batched_tokens: (value) => t("at most {n} tokens per batch", { n: count(value) }),
  enforce_eager: (value) => (value ? t("no CUDA graphs") : t("CUDA graphs")),
  gpu_memory_utilization: (value) => t("{share} % of the GPU for the engine", { share: significant(Number(value) * 100, 3) }),
  expert_layers_on_host: (value) => t("experts of {n} layers in host memory", { n: count(value) }),
  layers_on_accelerator: (value) => t("{n} layers on the GPU", { n: count(value) }),
  replicas: (value) => t("{n} replicas", { n: count(value) }),
};

const placeOf = (value) => (value === "cpu" ? t("host memory") : value === "nvme" ? t("NVMe storage") : value);

const plain = (value) => (value === true ? t("on") : value === false ? t("off") : String(value));

/** A setting as a phrase: "full recomputation", "tensor parallelism 8". Of an option that has no phrase: its label or name, and the value. */
export function phrase(name, value) {
  const settled = value === "true" ? true : value === "false" ? false : value;
  return PHRASES[name]?.(settled) ?? `${labelOf(name) ?? name.replaceAll("_", " ")} ${plain(settled)}`;
}

/** The phrases of a change, in one text. */
export const phrases = (change) => Object.entries(change).map(([name, value]) => phrase(name, value)).join(t(", "));
