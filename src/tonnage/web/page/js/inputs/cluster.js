/* The cluster: nodes, accelerators of each, and which; common ones as chips, the whole catalogue as a list, this machine. */
import { Refused } from "../api.js";
import { combobox, matching } from "../combobox.js";
import { $, $$, h } from "../dom.js";
import { accelerator, all, clusterText, machineOf, nodes as nodesOf } from "../machine.js";
import { fixed, gib } from "../numbers.js";
import { machineWords } from "../phrases.js";
import { change, cluster, MISCOUNTED, state } from "../state.js";
import { t } from "../words.js";
import { labelOf } from "./labels.js";

const CHIPS = [["H100 80", "H100-SXM-80GB"], ["H200", "H200-SXM-141GB"], ["B200", "B200-SXM-180GB"], ["MI300X", "MI300X"], ["A100 80", "A100-SXM-80GB"], ["L40S", "L40S"], ["RTX 4090", "RTX-4090"]];
const LOCAL = "local";
const COUNT = /^0*[1-9]\d*$/;
let typedText = ""; // of the box, before one of its list was picked
let answered = { asked: "", on: "" }; // the cluster of the newest answer as it was typed, and in full, such as 8x8xH100-SXM-80GB for 64xh100

/** Nodes, accelerators of each, and name of the cluster that stands: as the answer has them, where there is one. */
function standing() {
  const typed = machineOf(cluster());
  const full = machineOf(answered.on);
  return typed.name !== LOCAL && answered.asked === cluster() && accelerator(full.name) ? full : typed;
}

export function build(slot) {
  const { field, list } = combobox({ id: "machine", label: t("Machines"), find, take: picked, enter: entered, "aria-describedby": "machine-about machine-err", onchange: written });
  field.addEventListener("input", () => (typedText = field.value));
  const chips = [...CHIPS.filter(([, name]) => all().length === 0 || accelerator(name)), [t("this machine"), LOCAL]];
  slot.replaceChildren(
    h("legend", {}, t("Cluster")),
    h(
      "div",
      { class: "triple" },
      h("label", {}, h("span", {}, t("Nodes")), h("input", { id: "nodes", inputmode: "numeric", autocomplete: "off", "aria-describedby": "counts-err", oninput: counted })),
      h("i", { "aria-hidden": "true" }, "×"),
      h("label", {}, h("span", {}, t("GPUs per node")), h("input", { id: "each", inputmode: "numeric", autocomplete: "off", "aria-describedby": "counts-err", oninput: counted })),
      h("i", { "aria-hidden": "true" }, "="),
      h("output", { id: "gpus", for: "nodes each" }),
    ),
    h("p", { class: "err", id: "counts-err", hidden: true }),
    h("div", { class: "chips", role: "radiogroup", "aria-label": t("Accelerator") }, chips.map(([words, name]) => chip(words, name))),
    h("label", { class: "other" }, h("span", {}, t("Or any of the catalogue, a node, a TOML file")), field),
    h("div", { class: "combo" }, list),
    h("p", { class: "help", id: "machine-about" }),
    h("p", { class: "err", id: "machine-err", hidden: true }),
  );
}

function chip(words, name) {
  return h("label", {}, h("input", { type: "radio", name: "accelerator", value: name, onchange: () => choose(name) }), h("span", {}, words));
}

function choose(name) {
  const { nodes, each } = standing();
  change({ on: name === LOCAL ? name : clusterText(nodes, each, name) });
}

/** Machines that a text may mean: accelerators, then nodes. */
function find(text) {
  const { name } = machineOf(text);
  if (!name || name.toLowerCase() === standing().name.toLowerCase()) return [];
  const accelerators = all().map((each) => ({ name: each.name, words: `${each.name} ${each.vendor} ${each.generation}`.toLowerCase(), about: () => about(each) }));
  const machines = nodesOf().map((each) => ({ name: each.name, words: `${each.name} ${each.accelerator}`.toLowerCase(), about: () => t("node of {n} × {name}", { n: each.accelerators, name: each.accelerator }) }));
  return matching([...accelerators, ...machines], name).map((each) => ({ name: each.name, about: each.about() }));
}

/** One of the list: counts that were typed before it, else those that there are. A node has its own. */
function picked(name) {
  const { nodes, each, counted } = machineOf(typedText);
  typedText = "";
  const kept = standing();
  if (!accelerator(name)) return set(counted && nodes * each > 1 ? `${nodes * each}x${name}` : name);
  return set(counted ? clusterText(nodes, each, name) : clusterText(kept.nodes, kept.each, name));
}

const set = (on) => (on === cluster() ? undefined : change({ on }));

function entered(text, first) {
  if (first && !accelerator(machineOf(text).name) && !/[/\\]|\.toml$/.test(text)) return picked(first);
  return written({ target: { value: text } });
}

/** A text with counts of its own is taken whole; a bare name keeps the counts that there are. */
function written({ target }) {
  const text = target.value.trim();
  if (!text) return;
  set(machineOf(text).counted || !accelerator(text) ? text : clusterText(standing().nodes, standing().each, text));
}

function counted() {
  const [nodes, each] = ["#nodes", "#each"].map((id) => $(id).value.trim());
  if (!nodes || !each) return; // it is being typed anew
  const wrong = { nodes: COUNT.test(nodes) ? null : nodes, each: COUNT.test(each) ? null : each };
  if (wrong.nodes || wrong.each) change(wrong);
  else change({ on: clusterText(Number(nodes), Number(each), standing().name) });
}

/** Throws Refused where one of the two counts is none. */
export function check() {
  const field = MISCOUNTED.find((each) => each in state.values);
  if (field) throw new Refused("InvalidInput", t("{field} must be a whole number of 1 or more. Got {value}.", { field: labelOf(field), value: state.values[field] }), 0, field);
}

export function refresh(answer) {
  if (answer) answered = { asked: answer.question.on, on: String(answer.document.question.on?.value ?? "") };
  const { nodes, each, name } = standing();
  const found = accelerator(name);
  for (const [id, value] of [["nodes", nodes], ["each", each]]) {
    const input = $(`#${id}`);
    input.disabled = name === LOCAL;
    if (input !== document.activeElement) input.value = state.values[id] ?? value;
  }
  const machine = $("#machine");
  if (machine !== document.activeElement) machine.value = name === LOCAL ? "" : name;
  for (const radio of $$('[name="accelerator"]')) radio.checked = radio.value.toLowerCase() === (found?.name ?? name).toLowerCase();
  const n = answer?.document.question.accelerators?.value ?? nodes * each;
  $("#gpus").replaceChildren(h("b", {}, fixed(n)), " ", n === 1 ? t("GPU") : t("GPUs"));
  const whole = found && n === nodes * each ? t("{cluster} = {n} GPUs", { cluster: machineWords(clusterText(nodes, each, found.name)), n: fixed(n) }) : "";
  $("#machine-about").textContent = [n > 1 ? whole : "", found ? about(found) : ""].filter(Boolean).join(t(": "));
}

function about({ memory, dense_flops: flops }) {
  const speed = flops?.bf16 ?? flops?.fp16;
  return [
    t("{gib} GiB as the driver reports", { gib: gib(memory.reported_bytes ?? memory.nominal_bytes, 2) }),
    memory.bytes_per_second ? `${fixed(memory.bytes_per_second / 1e9)} GB/s` : null,
    speed ? t("{flops} TFLOP/s dense bf16", { flops: fixed(speed / 1e12) }) : null,
  ].filter(Boolean).join(t(", "));
}
