/* An input with its label and unit. What was set has a tick in the left margin; what was not shows the answer's default, and why. */
import { $, h } from "../dom.js";
import { change, state } from "../state.js";
import { t, tr } from "../words.js";

const GROUPED = /^\d{1,3}(,\d{3})+$/; // as numbers are shown; commas that separate other things stay

/** One input. `option`: its row of the table, `input` its name in the form where that is another; `label`: words, or null where its name is shown as it is typed. */
export function row(option, label, unit) {
  const id = `in-${option.name}`;
  const about = `${id}-about`;
  return h(
    "div",
    { class: "row", "data-row": option.name },
    h("label", { for: id }, label ?? h("code", {}, option.name)),
    field(option, id, about),
    unit ? h("small", { class: "u" }, unit) : null,
    h("p", { class: "help about", id: about }),
    h("p", { class: "err", id: `${id}-err`, hidden: true }),
  );
}

function field(option, id, about) {
  const common = { id, name: option.input ?? option.name, "data-option": option.name, "aria-describedby": about };
  if (option.kind === "switch") return h("select", { ...common, onchange: set }, choice("", ""), choice("true", t("on")), choice("false", t("off")));
  if (option.choices.length && !option.open) return h("select", { ...common, onchange: set }, choice("", ""), option.choices.map((each) => choice(each, each)));
  const list = option.open ? `${id}-list` : null;
  const input = h("input", { ...common, list, autocomplete: "off", spellcheck: "false", oninput: set, onblur: restore });
  return list ? [input, h("datalist", { id: list }, option.choices.map((each) => choice(each, each)))] : input;
}

const choice = (value, words) => h("option", { value }, words);

function set({ target }) {
  const text = target.value.trim();
  change({ [target.dataset.option]: GROUPED.test(text) ? text.replaceAll(",", "") : text });
}

/** An input left empty shows its default again. */
function restore({ target }) {
  if (target.value.trim() === "") target.value = target.dataset.default ?? "";
}

/** Brings a row up to date: the value, whether it was set, what the default is and where it comes from. */
export function refresh(option, answer, within = document) {
  const element = $(`[name="${option.input ?? option.name}"]`, within);
  if (!element) return;
  const set = option.name in state.values;
  const used = answer?.question?.[option.name];
  const text = used?.value === null || used?.value === undefined ? "" : Array.isArray(used.value) ? used.value.join(",") : String(used.value);
  $(`[data-row="${option.name}"]`, within)?.toggleAttribute("data-set", set);
  if (element.tagName === "SELECT") select(element, option, set, text);
  else {
    element.dataset.default = set ? "" : text;
    if (element !== document.activeElement) element.value = set ? state.values[option.name] : grouped(text);
  }
  const about = document.getElementById(`in-${option.name}-about`);
  if (about) about.textContent = [about.dataset.help, set ? "" : reason(used, option)].filter(Boolean).join(" ");
}

/** The first choice stands for the default: its name, or that word where another was set. */
function select(element, option, set, text) {
  const shown = text === "true" ? t("on") : text === "false" ? t("off") : text || tr(option.default);
  element.options[0].textContent = set || !shown ? t("default") : shown;
  // The default stands once in the list, as long as it is what is used.
  for (const each of [...element.options].slice(1)) each.hidden = !set && each.value === text;
  const value = set ? state.values[option.name] : "";
  if (value && ![...element.options].some((each) => each.value === value)) element.append(choice(value, value));
  element.value = value;
}

const grouped = (text) => (/^\d{5,}$/.test(text) ? Number(text).toLocaleString("en") : text);

const FROM = { default: () => t("Default"), model: () => t("From the model"), cluster: () => t("From the cluster"), runtime: () => t("From the runtime"), catalogue: () => t("From the catalogue"), measurements: () => t("From measurements"), chosen: () => t("Chosen for you") };

function reason(used, option) {
  if (used && FROM[used.from]) return used.why ? `${FROM[used.from]()}${t(": ")}${tr(used.why)}` : FROM[used.from]();
  return option.default ? `${t("Default")}${t(": ")}${tr(option.default)}` : "";
}
