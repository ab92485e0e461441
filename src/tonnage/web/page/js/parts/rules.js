/* The source documents' rules of thumb, each beside the exact figure. Sliders move what both follow; the server works both, by the formulas
   that everything else uses. */
import { ask } from "../api.js";
import { number, offer, path } from "../card.js";
import { $, $$, h, icon, section } from "../dom.js";
import { inLabels } from "../inputs/labels.js";
import { change as changed, fixed, said, seconds, short } from "../numbers.js";
import { configOf, isPasted } from "../pasted.js";
import { change, state as inputs } from "../state.js";
import { language, t, tr } from "../words.js";
import { DOCUMENTS, readable } from "../sources.js";
import { later, shown } from "./later.js";

/* What may move: its words, from and to, whether steps are factors, and how it is said. */
const SLIDERS = {
  num_hidden_layers: { label: () => t("layers of the model"), least: 1, most: 200, say: (value) => fixed(value) },
  sequence_length: { label: () => t("sequence length"), least: 128, most: 131072, factors: true, say: (value) => fixed(value) },
  micro_batch_size: { label: () => t("sequences of a pass"), least: 1, most: 256, factors: true, say: (value) => fixed(value) },
  tokens: { label: () => t("training tokens"), least: 1e9, most: 2e13, factors: true, say: short },
  num_accelerators: { label: () => t("accelerators"), least: 1, most: 65536, factors: true, say: (value) => fixed(value) },
  utilization: { label: () => t("share of the peak"), least: 0.05, most: 1, fine: true, say: (value) => `${fixed(100 * value)} %` },
};
const STEPS = 400; // of a slider
const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: STEPS / 10, PageDown: -STEPS / 10 }; // steps of a slider

const asking = new Map(); // rule -> AbortController
const figured = new Map(); // rule -> where its sliders stood, as text, when its figures on the page were asked for
const PLACE = "rule"; // rule_a6_sequence_length is where the slider of rule A6 stands, among the inputs of the page

const letter = () => (inputs.values.rules_part in DOCUMENTS ? inputs.values.rules_part : "A");
/** The model that rules are worked on, or null for each document's own example. */
const model = () => {
  const text = inputs.values.rules_of === "model" ? inputs.values.model : null;
  return text && isPasted(text) ? configOf(text) : (text ?? null);
};

export function draw(slot, answer, state) {
  let worked = null;
  try {
    worked = model();
  } catch (error) {
    delete slot.dataset.drawn;
    return section(slot, t("Rules of thumb, beside the exact figure"), null, h("h1", { class: "vh" }, t("Rules of thumb")), choices(state, true), h("p", { class: "err" }, error.message));
  }
  const question = { names: [letter()], ...(worked ? { model: worked } : {}) };
  const key = JSON.stringify(question);
  // Sliders stay on the page while they are dragged: a position that changed, by a hand or an undo, moves what is there.
  const drawn = JSON.stringify([key, language(), Boolean(state.values.model)]);
  if (slot.dataset.drawn === drawn) return follow(slot);
  const asked = later("rules", key, null, (signal) => ask("rules", question, signal), () => draw(slot, answer, state), 0);
  section(slot, t("Rules of thumb, beside the exact figure"), t("Move a slider; both sides follow"), h("h1", { class: "vh" }, t("Rules of thumb")), choices(state, Boolean(worked)), shown(asked, ({ document }) => document.rules.map(ruleOf)));
  delete slot.dataset.drawn;
  if (!asked.current || !asked.made) return;
  slot.dataset.drawn = drawn;
  figured.clear();
  follow(slot);
}

function choices(state, own) {
  const radio = (name, value, text, now, group) => h("label", {}, h("input", { type: "radio", name, value, checked: now, onchange: () => change({ [group]: value }) }), h("span", {}, text));
  return h("div", { class: "rulechoice" },
    h("div", { class: "chips", role: "radiogroup", "aria-label": t("Document") }, Object.entries(DOCUMENTS).map(([name, text]) => radio("rules_part", name, text(), letter() === name, "rules_part"))),
    state.values.model ? h("div", { class: "chips", role: "radiogroup", "aria-label": t("Worked on") }, radio("rules_of", "example", t("the document's own example"), !own, "rules_of"), radio("rules_of", "model", t("the model of this page"), own, "rules_of")) : null);
}

function ruleOf(rule) {
  const box = h("div", { class: "rule", "data-rule": rule.name });
  const sliders = Object.entries(rule.follows).filter(([name]) => name in SLIDERS).map(([name, value]) => slider(rule.name, name, value));
  box.append(
    h("div", {}, h("b", {}, rule.name), ` ${tr(rule.title)}`, h("br"), h("code", {}, rule.text), " ", h("small", {}, readable(rule.source)), sliders.length ? h("div", { class: "slides" }, sliders) : null,
      h("p", { class: "note" }, t("The document prints: {text}", { text: tr(rule.printed) }), rule.model ? "" : t(" (its example: {model})", { model: rule.example })),
      rule.erratum ? h("p", { class: "note erratum" }, icon("tight"), " ", t("Erratum: {text}", { text: tr(rule.erratum) })) : null,
      rule.note ? h("p", { class: "note" }, tr(rule.note)) : null),
    ...outputs(rule));
  return box;
}

function outputs(rule) {
  const root = `rule: ${rule.name}`;
  const own = { name: rule.title, value: rule.value, unit: rule.unit, combine: "leaf", basis: "rule", formula: rule.formula, text: rule.text, source: rule.source, inputs: rule.inputs, children: [] };
  offer(root, { rule: own, exact: rule.exact });
  const off = rule.unit === rule.exact.unit && rule.exact.value ? changed(rule.value / rule.exact.value - 1) : null;
  const why = off ? null : t("The rule counts {one}, the exact figure {other}.", { one: unitOf(rule.unit), other: unitOf(rule.exact.unit) });
  const side = (name, which, value, unit) => h("div", { "data-side": which }, h("small", {}, name), h("output", {}, number(path(root, which), text(value, unit))), unit === "accelerators" ? h("small", {}, tr(unit)) : null, unit === "bytes" ? h("small", {}, `${fixed(value / 1e9, value < 1e10 ? 2 : 1)} GB`) : null);
  return [side(t("rule"), "rule", rule.value, rule.unit), side(t("exact"), "exact", rule.exact.value, rule.exact.unit), h("div", { "data-side": "off" }, h("small", {}, t("off by")), h("output", {}, off ?? h("span", { class: "unlike" }, t("not comparable")))), why && h("div", { "data-side": "why" }, h("small", {}, why))].filter(Boolean);
}

/** What a figure counts, where the two sides count different things. */
const unitOf = (unit) => tr(unit) || t("a plain number");

const text = (value, unit) => (unit === "seconds" ? seconds(value).join(" ") : unit === "parameters" || unit === "tokens" ? short(value) : unit === "bytes per parameter" ? `${fixed(value, 2)} B` : said(value, unit.replace(/^accelerators$/, "")));

/* ---- sliders ---- */

function slider(rule, name, value) {
  const { label, least, most, factors, say } = SLIDERS[name];
  const top = Math.max(most, value);
  const place = (each) => Math.round(factors ? (Math.log(each / least) / Math.log(top / least)) * STEPS : ((each - least) / (top - least)) * STEPS);
  /* The value of the inputs of the page; one that a link says and the slider cannot take leaves it at its default. */
  const now = () => {
    const wanted = Number(inputs.values[placeOf(rule, name)] ?? value);
    return wanted >= least && wanted <= top ? wanted : value;
  };
  const told = h("small", { "data-x": "" });
  const input = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${rule}: ${label()}`, "data-moves": name,
    oninput: () => {
      const step = Number(input.value);
      change({ [placeOf(rule, name)]: step === place(value) ? null : at(name, step, top) });
      input.stand();
    },
    onkeydown: (event) => {
      const way = KEYS[event.key];
      if (!way) return;
      event.preventDefault(); // a step of the browser's own may be too short to reach another value: the slider would stand still
      let step = Math.min(STEPS, Math.max(0, Number(input.value) + way));
      while (step > 0 && step < STEPS && Math.sign(way) * (at(name, step, top) - now()) <= 0) step += Math.sign(way);
      input.value = step;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    } });
  input.stand = () => {
    const stands = now();
    if (Number(input.value) !== place(stands) || !told.textContent) input.value = place(stands);
    told.textContent = say(stands);
    input.setAttribute("aria-valuetext", say(stands));
    return stands === value ? {} : { [name]: stands };
  };
  input.stand();
  return h("label", { class: "slide" }, h("span", {}, label()), input, told);
}

const placeOf = (rule, name) => `${PLACE}_${rule.toLowerCase()}_${name}`;

/** The value that a slider stands on: whole, but of shares. */
function at(name, step, most) {
  const { least, factors, fine } = SLIDERS[name];
  const value = factors ? least * (most / least) ** (step / STEPS) : least + (step / STEPS) * (most - least);
  if (fine) return Math.round(value * 100) / 100;
  return value > 1e6 ? Number(value.toPrecision(3)) : Math.round(value);
}

/** Each rule whose sliders stand elsewhere than its figures were worked on is worked anew by the server, both sides. */
function follow(slot) {
  for (const box of $$("[data-rule]", slot)) {
    const moved = Object.assign({}, ...$$("[data-moves]", box).map((input) => input.stand()));
    const text = JSON.stringify(moved);
    if (text === (figured.get(box.dataset.rule) ?? "{}")) continue;
    figured.set(box.dataset.rule, text);
    work(box.dataset.rule, moved);
  }
}

async function work(rule, moved) {
  asking.get(rule)?.abort();
  const mine = new AbortController();
  asking.set(rule, mine);
  try {
    const { document } = await ask("rules", { names: [rule], ...(model() ? { model: model() } : {}), ...moved }, mine.signal);
    show(document.rules[0], null);
  } catch (error) {
    if (error.name !== "AbortError") show({ name: rule }, error);
  }
}

function show(rule, error) {
  const box = $(`[data-rule="${rule.name}"]`);
  if (!box) return;
  box.querySelector(".err")?.remove();
  if (error) return void box.firstElementChild.append(h("p", { class: "err" }, inLabels(tr(error.message))));
  for (const side of $$("[data-side]", box)) side.remove();
  box.append(...outputs(rule));
}
