/* Three questions to start from. Names of models and machines are not translated. */
import { h } from "../dom.js";
import { change } from "../state.js";
import { t } from "../words.js";

const EXAMPLES = [
  ["Llama-3.1-70B · 8 × 8 × H100", () => t("Train"), "train", { model: "llama-3.1-70b", on: "8x8xH100-SXM-80GB", tensor_parallel_size: 8, pipeline_parallel_size: 4, global_batch_size: 128, sequence_length: 8192, tokens: "100B" }],
  ["Llama-3.1-8B · 1 × RTX 4090", () => t("Fine-tune"), "tune", { model: "llama-3.1-8b", on: "RTX-4090", method: "qlora", sequence_length: 2048 }],
  ["Qwen3-32B · 2 × H200", () => t("Serve"), "serve", { model: "qwen3-32b", on: "2xH200-SXM-141GB", input_tokens: 8192, output_tokens: 1024, concurrency: 16 }],
];

export function examples() {
  const buttons = EXAMPLES.map(([name, what, tab, values]) => h("button", { type: "button", class: "btn", "data-example": tab, onclick: () => change(values, tab) }, `${name} · `, what()));
  return h("div", { class: "starts" }, h("small", {}, t("Or start from one of these")), buttons);
}
