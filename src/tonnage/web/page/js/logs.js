/* The log of a run: why it ran out of memory, or its figures beside the estimate of the question on the page. The server reads it. */
import { diagnose, options, reconcile, Refused } from "./api.js";
import { h, icon, scroll } from "./dom.js";
import { bytes, change, significant } from "./numbers.js";
import { question, state, VERB } from "./state.js";
import { t, tr } from "./words.js";

const HEAD = 300_000; // characters of the start of a long log that are read: an engine says there what it takes
const TAIL = 500_000; // and of its end, where memory ran out
const SIGNS = /out of memory|OutOfMemory|Traceback|\b(INFO|DEBUG|WARN|WARNING|ERROR)\b|\d\d:\d\d:\d\d|Benchmark Result|memory\.used|_seconds_(sum|count)|tokens\/sec|"avg_ts"|±/;
const LINES = 6; // lines of evidence, the first ones
const QUANTITIES = {
  weights: () => t("Weights"),
  tensor_bytes: () => t("Weights"),
  weights_memory: () => t("Weights"),
  gradient_memory: () => t("Gradients"),
  optimizer_memory: () => t("Optimizer states"),
  forward_memory: () => t("Activations"),
  activations: () => t("Activations"),
  outside_torch: () => t("Outside PyTorch"),
  cuda_graphs: () => t("CUDA graph memory"),
  torch_peak: () => t("Peak of PyTorch"),
  kv_cache: () => t("KV cache"),
  kv_buffer: () => t("KV cache"),
  kv_cache_tokens: () => t("Tokens in the KV cache"),
  kv_cache_blocks: () => t("Blocks of the KV cache"),
  request_cache: () => t("KV cache of one request"),
  concurrency: () => t("Requests of full length"),
  allocated_memory: () => t("Allocated by PyTorch"),
  reserved_memory: () => t("Reserved by PyTorch"),
  process_memory: () => t("Memory of the process"),
  step_time: () => t("Step time"),
  tokens_per_second: () => t("Training tokens/s"),
  samples_per_second: () => t("Samples/s"),
  flops_per_second: () => t("FLOP/s"),
  mfu: () => t("MFU"),
  ttft: () => t("TTFT"),
  tpot: () => t("TPOT"),
  end_to_end: () => t("Request time"),
  input_tokens_per_second: () => t("Input tokens/s"),
  output_tokens_per_second: () => t("Output tokens/s"),
  requests_per_second: () => t("Requests/s"),
  prefill_tokens_per_second: () => t("Prefill tokens/s"),
  decode_tokens_per_second: () => t("Decode tokens/s"),
};
// Phases and causes of a failure.
const WORDS = {
  "loading weights": () => t("loading weights"),
  "optimizer step": () => t("optimizer step"),
  forward: () => t("forward pass"),
  backward: () => t("backward pass"),
  loss: () => t("loss"),
  "graph capture": () => t("CUDA graph capture"),
  "cache allocation": () => t("KV cache allocation"),
  profiling: () => t("profiling run"),
  serving: () => t("serving"),
  "checkpoint saving": () => t("saving a checkpoint"),
  communication: () => t("communication"),
  host: () => t("host"),
  weights: () => t("weights"),
  "kv cache": () => t("KV cache"),
  activations: () => t("activations"),
  logits: () => t("logits"),
  "optimizer states": () => t("optimizer states"),
  gradients: () => t("gradients"),
  "cuda graphs": () => t("CUDA graph memory"),
  "communication buffers": () => t("communication buffers"),
  fragmentation: () => t("fragmentation"),
  "another process": () => t("another process"),
  "context too long": () => t("context too long"),
  "host memory": () => t("host memory"),
  "shared memory": () => t("shared memory"),
  unknown: () => t("not said"),
};
// Numbers of a failure that are shown.
const NUMBERS = {
  tried: () => t("asked for"),
  free: () => t("free"),
  total: () => t("GPU memory"),
  allocated: () => t("allocated by PyTorch"),
  reserved_but_unallocated: () => t("reserved and unallocated"),
  in_use_by_this_process: () => t("this process"),
  in_use_by_other_processes: () => t("other processes"),
  weights: () => t("weights"),
  weights_and_outside_pytorch: () => t("weights and memory outside PyTorch"),
  activations: () => t("activations"),
  kv_cache: () => t("KV cache"),
  available_kv: () => t("left for the KV cache"),
  needed_kv: () => t("KV cache needed"),
  cuda_graphs: () => t("CUDA graph memory"),
  outside_pytorch: () => t("outside PyTorch"),
  wanted: () => t("wanted"),
  peak_allocated: () => t("peak allocated"),
  peak_reserved: () => t("peak reserved"),
  in_use_on_host: () => t("in use on the host"),
};
const CHANGES = { machine: () => t("takes another machine"), workload: () => t("changes the workload"), numerics: () => t("changes the numerics"), method: () => t("changes the method") };

/** Whether a text reads more like a log than like a config: it is asked first as what it seems. */
export const seemsLog = (text) => SIGNS.test(text);

/** The text of a file, of a log that is longer than a question may be its start and its end. */
export async function textOf(file) {
  return file.size <= HEAD + TAIL ? file.text() : `${await file.slice(0, HEAD).text()}\n${await file.slice(-TAIL).text()}`;
}

/** What a log says: {diagnosis, ofPage} or {figures, verb}; null where it says neither. */
export async function read(text, name) {
  const log = { text, ...(name ? { name } : {}) };
  return (await diagnosed(log)) ?? (await reconciled(log));
}

/** Whether what was found is of the question on the page, and changes with it. */
export const isOfPage = ({ figures, ofPage }) => Boolean(figures || ofPage);

async function diagnosed(log) {
  let found;
  try {
    found = (await diagnose(log)).document;
  } catch (error) {
    if (error instanceof Refused && error.kind === "MissingDatum") return null;
    throw error;
  }
  const run = found.estimate ? null : await runOf(VERB[state.tab]);
  if (!run?.model) return { diagnosis: found, ofPage: false };
  try {
    return { diagnosis: (await diagnose({ ...log, ...run })).document, ofPage: true };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { diagnosis: found, ofPage: false }; // the question on the page is of another run
  }
}

/** Beside the question of the tab; where it has none, or measures nothing of the log, beside that of the other verb. */
async function reconciled(log) {
  const own = VERB[state.tab];
  let refused = null;
  for (const verb of own ? [own] : ["serve", "train"]) {
    try {
      return { figures: (await reconcile({ ...log, verb, ...(await runOf(verb)) })).document, verb };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (/no figure is found/.test(error.message)) return null;
      refused = error;
    }
  }
  throw refused;
}

/** The question on the page as the run of a log. */
async function runOf(verb) {
  if (!verb || !state.values.model) return {};
  const known = new Set((await options(verb)).map((each) => each.name));
  const { model, on, ...others } = question(state.tab, known);
  return typeof model === "string" ? { model, on, options: others } : {};
}

export const drawn = (found) => (found.diagnosis ? ofDiagnosis(found) : ofFigures(found));

function ofDiagnosis({ diagnosis, ofPage }) {
  const { tool_name: tool, phase, cause, text, evidence, numbers, fixes, estimate, warnings } = diagnosis;
  const sizes = numbers.filter((each) => each.unit === "bytes" && each.name in NUMBERS);
  return [
    h("h3", {}, icon("no"), " ", tr(text)),
    h("dl", { class: "log-facts" }, [[t("Tool"), tool], [t("Phase"), worded(phase)], [t("Cause"), worded(cause)], ...(estimate ? [[t("Estimate"), t("{needed} of {usable} usable", { needed: sized(estimate.needed_bytes), usable: sized(estimate.usable_bytes) })]] : [])].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("ol", { class: "log-lines", "aria-label": t("Lines of the log") }, evidence.slice(0, LINES).map((line) => h("li", { value: line.line }, h("code", {}, line.text)))),
    sizes.length ? h("p", { class: "note" }, sizes.map((each) => `${NUMBERS[each.name]()} ${sized(each.value)}`).join(" · ")) : null,
    h("h3", {}, t("Fixes")),
    h("p", { class: "note" }, estimate ? (ofPage ? t("Estimated for the question on this page.") : t("Estimated for the run that the log names.")) : t("By rule, without numbers: the run is not known.")),
    h("ul", { class: "import-keys log-fixes", "aria-label": t("Fixes") }, fixes.map(fix)),
    ...warnings.map((each) => h("p", { class: "note" }, tr(each))),
  ].filter(Boolean);
}

const worded = (name) => WORDS[name]?.() ?? name;
const sized = (value) => bytes(value).join(" ");

function fix({ text, in_flags: isFlag, why, changes, freed_bytes: freed, needed_bytes: needed }) {
  const frees = freed === undefined ? null : h("b", {}, freed >= 0 ? t("frees {size}", { size: sized(freed) }) : t("needs {size} more", { size: sized(-freed) }));
  const notes = [needed === undefined ? "" : t("then {size}", { size: sized(needed) }), CHANGES[changes]?.() ?? "", why ? tr(why) : ""].filter(Boolean);
  return h("li", {}, isFlag ? h("code", {}, text) : tr(text), frees ? [" ", frees] : null, notes.length ? h("small", {}, notes.join(" · ")) : null);
}

function ofFigures({ figures: { figures, tools } }) {
  const sorted = [...figures].sort((one, other) => distance(other) - distance(one));
  const notes = [...new Set(figures.flatMap((each) => each.notes))];
  return [
    h("h3", {}, tools.join(" · ")),
    h("p", { class: "note" }, t("Measured by the log, estimated for the question on this page.")),
    scroll(t("Measured and estimated"), h("table", { class: "log-figures" },
      h("thead", {}, h("tr", {}, [t("Figure"), t("Measured"), t("Estimate"), t("Error"), t("In the error band")].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, sorted.map(figureRow)))),
    ...notes.map((each) => h("p", { class: "note" }, tr(each))),
  ];
}

const distance = ({ relative_error: error }) => (error === null ? -1 : Math.abs(error));

function figureRow({ quantity, metric, measured, predicted, unit, relative_error: error, inside, skipped }) {
  const of = (value) => (value === null ? "–" : `${significant(value, 4)}${unit === "count" ? "" : ` ${unit}`}`);
  return h("tr", {},
    h("th", { scope: "row" }, QUANTITIES[quantity]?.() ?? metric, h("small", {}, skipped ? tr(skipped) : metric)),
    h("td", {}, of(measured)), h("td", {}, of(predicted)), h("td", {}, error === null ? "–" : change(error)),
    h("td", {}, inside === null ? "–" : [icon(inside ? "fits" : "tight"), " ", inside ? t("yes") : t("no")]));
}
