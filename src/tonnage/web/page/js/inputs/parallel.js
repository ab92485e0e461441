/* Sizes of parallelism. Those that follow from the others are read-only. */
import { $, h } from "../dom.js";
import { change, state } from "../state.js";
import { t } from "../words.js";

/* [letters, option, derived] */
const TRAINING = [["TP", "tensor_parallel_size"], ["PP", "pipeline_parallel_size"], ["CP", "context_parallel_size"], ["EP", "expert_parallel_size"], ["DP", "data_parallel_size", true]];
const SERVING = [["TP", "tensor_parallel_size"], ["PP", "pipeline_parallel_size"], ["EP", "expert_parallel_size"], ["DP", "replicas", true]];

const rowsOf = (tab) => (tab === "serve" ? SERVING : TRAINING);
export const namesOf = (tab) => rowsOf(tab).map(([, name]) => name);

export function build(slot, tab) {
  const inputs = rowsOf(tab).map(([letters, name, derived]) =>
    h(
      "label",
      { title: name, "data-row": name },
      h("span", {}, letters),
      h("input", { id: `in-${name}`, name, inputmode: "numeric", autocomplete: "off", readonly: derived, "aria-label": derived ? `${letters}, ${name}, ${t("derived")}` : `${letters}, ${name}`, oninput: derived ? null : set, onblur: restore }),
    ),
  );
  slot.replaceChildren(h("legend", {}, t("Parallel sizes")), h("div", { class: "par" }, inputs), h("p", { class: "err", id: "parallel-err", hidden: true }));
}

function set({ target }) {
  change({ [target.name]: target.value.trim() });
}

function restore({ target }) {
  if (!target.value.trim()) target.value = target.dataset.default ?? "";
}

export function refresh(slot, tab, answer) {
  for (const [, name, derived] of rowsOf(tab)) {
    const input = $(`[name="${name}"]`, slot);
    const used = answer?.question?.[name]?.value;
    const set = !derived && name in state.values;
    input.dataset.default = used ?? "";
    input.closest("label").toggleAttribute("data-set", set);
    if (input !== document.activeElement) input.value = set ? state.values[name] : (used ?? "");
  }
}
