/* Questions to start from, as cards: shown until somebody changes something. Names of models and machines are not translated. */
import { html } from "../../vendor/preact.js";
import { change, isUntouched, START, state } from "../state.js";
import { t } from "../words.js";

/* [title, what of it, tab, its inputs] */
const EXAMPLES = [
  ["Llama-3.1-70B, 8 × H100", () => t("Serve 64 users, with targets"), "serve", START.values],
  ["DeepSeek-R1, 16 × H100", () => t("Serve over two nodes"), "serve", { model: "deepseek-r1", on: "2x8xH100-SXM-80GB" }],
  ["Llama-3.1-70B, 1 × H100", () => t("Serve 16 users: what would make it fit"), "serve", { model: "llama-3.1-70b", on: "H100-SXM-80GB", concurrency: "16" }],
  ["Llama-3.1-8B, RTX 4090", () => t("Fine-tune with QLoRA"), "tune", { model: "llama-3.1-8b", on: "RTX-4090", method: "qlora", sequence_length: "2048" }],
  ["Llama-3.1-70B, 64 × H100", () => t("Train on 1T tokens by a deadline"), "train", { model: "llama-3.1-70b", on: "8x8xH100-SXM-80GB", tokens: "1T", plan_deadline: "120d" }],
];

const key = (tab, values) => JSON.stringify([tab, Object.entries(values).sort()]);
const isShown = ([, , tab, values]) => key(state.tab, state.values) === key(tab, values);

export function Examples() {
  if (state.values.model && !(isUntouched() || EXAMPLES.some(isShown))) return null;
  return html`<div class="starts" role="group" aria-label=${t("Examples")}>${EXAMPLES.map((each) => {
    const [title, what, tab, values] = each;
    return html`<button type="button" class="example" data-example=${tab} aria-pressed=${String(isShown(each))} onClick=${() => begin(values, tab)}><b>${title}</b><small>${what()}</small></button>`;
  })}</div>`;
}

/** An example is a whole question: nothing older stays beside it. */
function begin(values, tab) {
  change({ ...Object.fromEntries(Object.keys(state.values).map((name) => [name, null])), ...values }, tab);
}
