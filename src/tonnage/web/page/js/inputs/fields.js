/* An input with its label and unit. What was set has a tick in the left margin; what was not shows the answer's default, and why. */
import { html, useState } from "../../vendor/preact.js";
import { change, state } from "../state.js";
import { t, tr } from "../words.js";
import { Problem } from "./errors.js";
import { labelOf } from "./labels.js";

const GROUPED = /^\d{1,3}(,\d{3})+$/; // as numbers are shown; commas that separate other things stay
const UNITS = {
  sequence_length: () => t("tokens"), global_batch_size: () => t("sequences"), micro_batch_size: () => t("sequences"), tokens: () => t("tokens"),
  dataset_tokens: () => t("tokens"), input_tokens: () => t("tokens"), output_tokens: () => t("tokens"), context: () => t("tokens"), concurrency: () => t("users"),
  ttft: () => t("s or ms"), tpot: () => t("s or ms"), plan_deadline: () => t("30d, 12h"), plan_budget: () => t("in USD"), plan_on: () => t("names with commas; 8x sets a number"),
};
/** Targets and wishes that no option of the verb is for. A deadline is compared with the answer, and the tab Plan searches with it. */
const OWN = {
  plan_deadline: { input: "run_deadline" },
  plan_budget: { input: "run_budget" },
  plan_on: { input: "asked_on" },
};

/** The row of an option's table, or one of the page's own; undefined where the verb has none such. */
export const optionOf = (name, options) => (name in OWN ? { name, kind: "text", choices: [], default: "", help: "", ...OWN[name] } : options.get(name));

/** One input. `help`: whether what the option is stands below it. */
export function Field({ option, answer, error, help = false }) {
  const { name } = option;
  const id = `in-${name}`;
  const label = labelOf(name);
  const about = [help && option.help ? `${tr(option.help)}.` : "", name in state.values ? "" : reason(answer?.question?.[name], option)].filter(Boolean).join(" ");
  const unit = UNITS[name]?.() ?? (help ? tr(option.unit ?? "") : "");
  const wrong = error?.at === name;
  const common = { id, name: option.input ?? name, "data-option": name, "aria-describedby": [about ? `${id}-about` : "", wrong ? `${id}-err` : ""].filter(Boolean).join(" ") || null, "aria-invalid": wrong ? "true" : null };
  return html`<div class="row" data-row=${name} data-set=${name in state.values ? "" : null}>
    <label for=${id}>${label ?? html`<code>${name}</code>`}${help && label ? html` <code>${name}</code>` : null}</label>
    <${Input} option=${option} used=${answer?.question?.[name]} common=${common} />
    ${unit ? html`<small class="u">${unit}</small>` : null}
    ${about ? html`<p class="help about" id=${`${id}-about`}>${about}</p>` : null}
    <${Problem} error=${error} field=${name} id=${`${id}-err`} />
  </div>`;
}

const DERIVED = ["data_parallel_size", "replicas"]; // follow from the others

function Input({ option, used, common }) {
  // What is being typed stays as it is typed, until it is left or the value changes by other ways.
  const [draft, setDraft] = useState(null);
  const { name } = option;
  const set = name in state.values;
  const text = textOf(used?.value);
  if (DERIVED.includes(name)) return html`<input ...${common} value=${text} readonly />`;
  if (option.kind === "switch" || (option.choices.length && !option.open)) return html`<${Choice} option=${option} text=${text} common=${common} />`;
  const now = state.values[name] ?? "";
  const shown = draft && draft.sent === now ? draft.text : set ? now : grouped(text);
  const list = option.open ? `${common.id}-list` : null;
  const input = html`<input ...${common} value=${shown} list=${list} autocomplete="off" spellcheck=${false} inputmode=${/size|tokens|length|concurrency/.test(name) ? "numeric" : null}
    onInput=${({ target }) => {
      const typed = target.value.trim();
      const sent = GROUPED.test(typed) ? typed.replaceAll(",", "") : typed;
      setDraft({ text: target.value, sent });
      change({ [name]: sent });
    }}
    onBlur=${() => setDraft(null)} />`;
  return list ? html`${input}<datalist id=${list}>${option.choices.map((each) => html`<option value=${each}>${each}</option>`)}</datalist>` : input;
}

/** The first choice stands for the default: its name, or that word where another was set. */
function Choice({ option, text, common }) {
  const { name } = option;
  const set = name in state.values;
  const value = state.values[name] ?? "";
  const words = (each) => (each === "true" ? t("on") : each === "false" ? t("off") : each);
  const choices = option.kind === "switch" ? ["true", "false"] : option.choices;
  const first = words(text) || tr(option.default);
  // The default stands once in the list, as long as it is what is used.
  const listed = [...choices.filter((each) => set || each !== text), ...(value && !choices.includes(value) ? [value] : [])];
  return html`<select ...${common} value=${value} onChange=${({ target }) => change({ [name]: target.value })}>
    <option value="" selected=${value === ""}>${set || !first ? t("default") : first}</option>${listed.map((each) => html`<option value=${each} selected=${value === each}>${words(each)}</option>`)}
  </select>`;
}

const textOf = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.join(",") : String(value));
const grouped = (text) => (/^\d{5,}$/.test(text) ? Number(text).toLocaleString("en") : text);

const FROM = { default: () => t("Default"), model: () => t("From the model"), cluster: () => t("From the cluster"), runtime: () => t("From the runtime"), catalogue: () => t("From the catalogue"), measurements: () => t("From measurements"), chosen: () => t("Chosen for you") };

/** Where a value that nobody gave is from; null where it was given. */
export const fromOf = ({ from, why }) => (FROM[from] ? (why ? `${FROM[from]()}${t(": ")}${tr(why)}` : FROM[from]()) : null);

function reason(used, option) {
  return (used && fromOf(used)) ?? (option.default ? `${t("Default")}${t(": ")}${tr(option.default)}` : "");
}
