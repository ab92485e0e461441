/* All settings that have no slot in the sentence, in the groups of the verb's --help, with a box that finds one. The rest of the page stands still
   while it is open. */
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { $, $$ } from "../dom.js";
import { Sign } from "../components.js";
import { state, TUNING } from "../state.js";
import { t, tr } from "../words.js";
import { Field } from "./fields.js";
import { labelOf } from "./labels.js";
import { fieldsOf, slotsOf } from "./slots.js";

// Of the page's own making, or another form of answer.
const LEFT_OUT = ["on", "frontier", "points", "for_my_machine", "order", "offline"];
const SIZES = {
  train: ["tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "expert_parallel_size", "data_parallel_size"],
  serve: ["tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "replicas"],
};
const BEHIND = [".top", ".ask-body", "main", "#inspector", "#pins"];

/** What reads or changes the model is seldom set: it stands last. */
const isOfModel = ({ group }) => /^(reading the model|dimensions)/.test(group);

/** Options of a tab's verb that stand here. */
export function listed(tab, options) {
  const out = new Set([...LEFT_OUT, ...slotsOf(tab).flatMap((slot) => fieldsOf(tab, slot)), ...(tab === "tune" || tab === "serve" ? [] : TUNING)]);
  return [...options.values()].filter((option) => !out.has(option.name));
}

/** How many of them are set. */
export const setOf = (tab, options) => listed(tab, options).filter((option) => option.name in state.values).length;

export function Drawer({ tab, options, answer, error, close }) {
  const [wanted, setWanted] = useState("");
  const finder = useRef(null);
  const box = useRef(null);
  useEffect(() => {
    const behind = BEHIND.flatMap((query) => $$(query));
    for (const each of behind) each.inert = true;
    const field = error?.at && document.getElementById(`in-${error.at}`);
    (field || finder.current).focus();
    return () => {
      behind.forEach((each) => (each.inert = false));
      $("#all-settings")?.focus(); // what opened it
    };
  }, []);
  const words = wanted.trim().toLowerCase().split(/[\s_-]+/).filter(Boolean);
  const sizes = SIZES[tab === "serve" ? "serve" : "train"];
  const all = listed(tab, options);
  const shown = all.filter((option) => words.every((word) => `${option.name} ${labelOf(option.name) ?? ""} ${tr(option.help)}`.toLowerCase().includes(word)));
  const parallel = sizes.map((name) => shown.find((option) => option.name === name)).filter(Boolean);
  const groups = new Map(parallel.length ? [[t("Parallel sizes"), parallel]] : []);
  const rest = shown.filter((option) => !sizes.includes(option.name)).sort((one, other) => isOfModel(one) - isOfModel(other));
  for (const option of rest) groups.set(tr(option.group), [...(groups.get(tr(option.group)) ?? []), option]);
  const keys = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  return html`<div class="scrim" onClick=${close}></div>
    <section class="drawer" id="settings" role="dialog" aria-modal="true" aria-labelledby="h-settings" ref=${box} onKeyDown=${keys}>
      <header><h2 id="h-settings">${t("All settings")}</h2><small>${t("{n} of {all} set", { n: setOf(tab, options), all: all.length })}</small><button type="button" class="btn plain x" aria-label=${t("Close")} onClick=${close}><${Sign} kind="close" /></button></header>
      <label class="finder"><span>${t("Find an option")}</span><input type="search" autocomplete="off" ref=${finder} value=${wanted} onInput=${({ target }) => setWanted(target.value)} /></label>
      ${[...groups].map(([title, list]) => html`<div class="group" key=${title}><h3>${title}</h3><div class="rows">${list.map((option) => html`<${Field} key=${option.name} option=${option} answer=${answer?.document} error=${error} help />`)}</div></div>`)}
      ${shown.length ? null : html`<p class="note">${t("No option is found by these words.")}</p>`}
    </section>`;
}
