/* The cluster: nodes, accelerators of each, and which; the whole catalogue as a list, this machine. */
import { html, useState } from "../../vendor/preact.js";
import { Refused } from "../api.js";
import { accelerator, all, clusterText, machineOf, nodes as nodesOf } from "../machine.js";
import { fixed, gib } from "../numbers.js";
import { machineWords } from "../phrases.js";
import { change, cluster, MISCOUNTED, state } from "../state.js";
import { t } from "../words.js";
import { Combobox, matching } from "./combobox.js";
import { Problem } from "./errors.js";
import { labelOf } from "./labels.js";

const USUAL = ["H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "MI300X", "A100-SXM-80GB", "L40S", "RTX-4090"];
const LOCAL = "local";
const COUNT = /^0*[1-9]\d*$/;
let answered = { asked: "", on: "", accelerators: null }; // the cluster of the newest answer as it was typed, and in full, such as 8x8xH100-SXM-80GB for 64xh100

/** Takes up the cluster of an answer. */
export function learn(answer) {
  if (!answer) return;
  const { on, accelerators } = answer.document.question;
  answered = { asked: answer.question.on, on: String(on?.value ?? ""), accelerators: accelerators?.value ?? null };
}

/** Nodes, accelerators of each, and name of the cluster that stands: as the answer has them, where there is one. */
function standing() {
  const typed = machineOf(cluster());
  const full = machineOf(answered.on);
  return typed.name !== LOCAL && answered.asked === cluster() && accelerator(full.name) ? full : typed;
}

/** Accelerators in all: those of the answer to what stands, else the product of the counts. */
function count() {
  const { nodes, each } = standing();
  return (answered.asked === cluster() ? answered.accelerators : null) ?? nodes * each;
}

/** Machines that a text may mean: accelerators, then nodes. Before anything is typed the usual ones. */
function find(text, isStanding) {
  const now = standing().name.toLowerCase();
  if (isStanding) return USUAL.filter((name) => accelerator(name)).map((name) => ({ name, cells: cellsOf(accelerator(name)), here: accelerator(name).name.toLowerCase() === now }));
  const { name } = machineOf(text);
  if (!name || name.toLowerCase() === now) return [];
  const accelerators = all().map((each) => ({ name: each.name, words: `${each.name} ${each.vendor} ${each.generation}`.toLowerCase(), cells: () => cellsOf(each) }));
  const machines = nodesOf().map((each) => ({ name: each.name, words: `${each.name} ${each.accelerator}`.toLowerCase(), cells: () => [t("node of {n} × {name}", { n: each.accelerators, name: each.accelerator })] }));
  return matching([...accelerators, ...machines], name).map((each) => ({ name: each.name, cells: each.cells() }));
}

const set = (on) => (on === cluster() ? undefined : change({ on }));

/** One of the list: counts that were typed before it, else those that there are. A node has its own. */
function picked(name, typedText) {
  const { nodes, each, counted } = machineOf(typedText);
  const kept = standing();
  if (!accelerator(name)) return set(counted && nodes * each > 1 ? `${nodes * each}x${name}` : name);
  return set(counted ? clusterText(nodes, each, name) : clusterText(kept.nodes, kept.each, name));
}

/** A text with counts of its own is taken whole; a bare name keeps the counts that there are. */
function written(text) {
  if (!text) return;
  set(machineOf(text).counted || !accelerator(text) ? text : clusterText(standing().nodes, standing().each, text));
}

/** Throws Refused where one of the two counts is none. */
export function check() {
  const field = MISCOUNTED.find((each) => each in state.values);
  if (field) throw new Refused("InvalidInput", t("{field} must be a whole number of 1 or more. Got {value}.", { field: labelOf(field), value: state.values[field] }), 0, field);
}

/** Counts, the cluster that they make, the list, this machine. `done`: called when a machine was taken. */
export function MachineBox({ error, done }) {
  const [typedText, setTyped] = useState("");
  const { nodes, each, name } = standing();
  const isLocal = name === LOCAL;
  const take = (picks) => {
    picked(picks, typedText);
    setTyped("");
    done();
  };
  const enter = (text, first) => {
    if (text !== null && first && !accelerator(machineOf(text).name) && !/[/\\]|\.toml$/.test(text)) picked(first, text);
    else if (text !== null) written(text);
    done();
  };
  const n = count();
  const wrong = error && ["on", "nodes", "each"].includes(error.at);
  return html`<div class="triple">
      <${Count} id="nodes" label=${t("Nodes")} value=${nodes} other=${each} isLocal=${isLocal} error=${error} />
      <i aria-hidden="true">×</i>
      <${Count} id="each" label=${t("GPUs per node")} value=${each} other=${nodes} isLocal=${isLocal} error=${error} />
      <i aria-hidden="true">=</i><output id="gpus" for="nodes each"><b>${fixed(n)}</b> ${n === 1 ? t("GPU") : t("GPUs")}</output>
    </div>
    ${["nodes", "each"].map((field) => html`<${Problem} error=${error} field=${field} id="counts-err" />`)}
    <p class="resolve" id="machine-about">${clusterWords(true)}</p>
    <${Combobox} id="machine" label=${t("Accelerator, node, or a TOML file")} value=${isLocal ? "" : name} placeholder=${isLocal ? t("this machine") : null} find=${find} take=${take} enter=${enter} typed=${setTyped} left=${written} wrong=${wrong && error.at === "on"} described=${wrong && error.at === "on" ? "machine-about machine-err" : "machine-about"} />
    <${Problem} error=${error} field="on" id="machine-err" />
    <p class="popfoot"><span>${t("A number before the name sets the count: 4xL40S")}</span><button type="button" class="btn" id="this-machine" aria-pressed=${String(isLocal)} onClick=${() => (set(LOCAL), done())}>${t("this machine")}</button></p>`;
}

function Count({ id, label, value, other, isLocal, error }) {
  const [draft, setDraft] = useState(null);
  const shown = state.values[id] ?? draft ?? String(value);
  const put = (text) => {
    if (!text.trim()) return setDraft(text); // it is being typed anew
    setDraft(null);
    const counts = id === "nodes" ? [text.trim(), String(other)] : [String(other), text.trim()];
    if (!COUNT.test(text.trim())) return change({ [id]: text.trim() });
    const { name } = standing();
    change({ on: clusterText(Number(counts[0]), Number(counts[1]), name) });
  };
  const step = (by) => put(String(Math.max(1, Number(value) + by)));
  const wrong = error?.at === id;
  return html`<div class="num"><label for=${id}>${label}</label><span>
    <button type="button" tabindex="-1" disabled=${isLocal || value <= 1} aria-label=${t("One less: {label}", { label })} onClick=${() => step(-1)}>−</button>
    <input id=${id} inputmode="numeric" autocomplete="off" disabled=${isLocal} value=${shown} aria-invalid=${wrong ? "true" : null} aria-describedby=${wrong ? "counts-err" : null} onInput=${({ target }) => put(target.value)} onBlur=${() => setDraft(null)} />
    <button type="button" tabindex="-1" disabled=${isLocal} aria-label=${t("One more: {label}", { label })} onClick=${() => step(1)}>+</button></span></div>`;
}

/** "8 nodes × 8 H100-SXM-80GB = 64 GPUs"; with what one is, where that is wanted. */
export function clusterWords(more = false) {
  const { nodes, each, name } = standing();
  if (name === LOCAL) return t("this machine");
  const found = accelerator(name);
  const n = count();
  if (!found || n !== nodes * each) return n > 1 ? t("{cluster} = {n} GPUs", { cluster: machineWords(cluster()), n: fixed(n) }) : machineWords(cluster());
  const made = nodes > 1 ? t("{nodes} nodes × {each} {name} = {n} GPUs", { nodes: fixed(nodes), each: fixed(each), name: found.name, n: fixed(n) }) : each > 1 ? t("1 node × {each} {name}", { each: fixed(each), name: found.name }) : `1 × ${found.name}`;
  return more ? [made, about(found)].join(t(": ")) : made;
}

const FORM = /-(?:SXM|PCIE|OAM)\S*$/i;

/** "8 × H100": the cluster as the sentence says it. */
export function clusterShort() {
  const { nodes, each, name } = standing();
  if (name === LOCAL) return t("this machine");
  const found = accelerator(name);
  if (!found || count() !== nodes * each) return machineWords(cluster());
  return [...(nodes > 1 ? [fixed(nodes)] : []), fixed(each), found.name.replace(FORM, "")].join("\u00a0×\u00a0");
}

/** What stands beside a machine in the list. */
function cellsOf({ memory, dense_flops: flops }) {
  const speed = flops?.bf16 ?? flops?.fp16;
  return [`${gib(memory.reported_bytes ?? memory.nominal_bytes)} GiB`, memory.bytes_per_second ? `${fixed(memory.bytes_per_second / 1e9)} GB/s` : "", speed ? `${fixed(speed / 1e12)} TFLOP/s` : ""];
}

function about({ memory, dense_flops: flops }) {
  const speed = flops?.bf16 ?? flops?.fp16;
  return [
    t("{gib} GiB as the driver reports", { gib: gib(memory.reported_bytes ?? memory.nominal_bytes, 2) }),
    memory.bytes_per_second ? `${fixed(memory.bytes_per_second / 1e9)} GB/s` : null,
    speed ? t("{flops} TFLOP/s dense bf16", { flops: fixed(speed / 1e12) }) : null,
  ].filter(Boolean).join(t(", "));
}
