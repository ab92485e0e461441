/* The source documents' rules of thumb, each beside the exact figure: one set of sliders, one table. The server works both sides, by the
   formulas that everything else uses. */
import { ask } from "../api.js";
import { offer, path, withdraw } from "../card.js";
import { inLabels } from "../inputs/labels.js";
import { change as changed, fixed, said, seconds, short } from "../numbers.js";
import { configOf, isPasted } from "../pasted.js";
import { DOCUMENTS } from "../sources.js";
import { change, state as inputs } from "../state.js";
import { drawInto, html, Icon, Num, Scroll } from "../view.js";
import { t, tr } from "../words.js";
import { later } from "./later.js";

/* What may move: its words, its values, and how they are said. `times`: what its number field counts in, and the unit beside it. */
const SLIDERS = {
  num_hidden_layers: { label: () => t("layers of the model"), least: 1, most: 200, say: (value) => fixed(value) },
  sequence_length: { label: () => t("sequence length"), least: 128, most: 131072, factors: true, say: (value) => fixed(value) },
  micro_batch_size: { label: () => t("sequences of a pass"), least: 1, most: 256, factors: true, say: (value) => fixed(value) },
  tokens: { label: () => t("training tokens"), least: 1e9, most: 2e13, factors: true, say: short, times: 1e9, unit: "B" },
  num_accelerators: { label: () => t("accelerators"), least: 1, most: 65536, factors: true, say: (value) => fixed(value) },
  utilization: { label: () => t("share of the peak"), least: 0.05, most: 1, fine: true, say: (value) => `${fixed(100 * value)} %`, times: 0.01, unit: "%" },
};
const NAMES = Object.keys(SLIDERS);
const BETWEEN = [1, 1.25, 1.5, 1.75]; // of two powers of two, where steps are factors
const placeOf = (name) => `rules_${name}`; // among the inputs of the page

let offered = []; // roots of cards of the rules on the page

const letter = () => (inputs.values.rules_part in DOCUMENTS ? inputs.values.rules_part : "A");
/** The model that rules are worked on, or null for each document's own example. */
const model = () => {
  const text = inputs.values.rules_of === "model" ? inputs.values.model : null;
  return text && isPasted(text) ? configOf(text) : (text ?? null);
};

export function draw(slot, answer, state) {
  let worked = null;
  let wrong = "";
  try {
    worked = model();
  } catch (error) {
    wrong = error.message;
  }
  const moved = Object.fromEntries(NAMES.map((name) => [name, placed(name)]).filter(([, value]) => value !== null));
  const question = { names: [letter()], ...(worked ? { model: worked } : {}), ...moved };
  const found = wrong ? {} : later("rules", JSON.stringify(question), null, (signal) => ask("rules", question, signal), () => draw(slot, answer, state), 0);
  const rules = found.made?.document.rules ?? [];
  for (const root of offered) withdraw(root);
  offered = rules.map(offerRule);
  const error = wrong || (found.error ? inLabels(tr(found.error.message)) : "");
  drawInto(slot, html`<${Rules} rules=${rules.filter((rule) => rule.name[0] === letter())} current=${Boolean(found.current)} error=${error} own=${Boolean(worked)} hasModel=${Boolean(state.values.model)} />`);
}

/** The value that a link or a hand gave a slider; null where it has none that the slider can take. */
function placed(name) {
  const { least, most } = SLIDERS[name];
  const text = inputs.values[placeOf(name)];
  const value = Number(text);
  return text === undefined || !(value >= least && value <= most * 10) ? null : value;
}

function Rules({ rules, current, error, own, hasModel }) {
  return html`
    <h1 class="vh">${t("Rules of thumb")}</h1>
    <header><h2 id="h-rules">${t("Rules of thumb, beside the exact figure")}</h2><p class="note">${t("One set of sliders; every row follows.")}</p></header>
    <div class="rulechoice">
      <${Radios} label=${t("Document")} name="rules_part" now=${letter()} of=${Object.entries(DOCUMENTS).map(([name, text]) => [name, text()])} />
      ${hasModel && html`<${Radios} label=${t("Worked on")} name="rules_of" now=${own ? "model" : "example"} of=${[["example", t("the document's own example")], ["model", t("the model of this page")]]} />`}
    </div>
    <div class="rules">
      <${Sliders} rules=${rules} />
      <div class=${current ? null : "old"} aria-busy=${current ? null : "true"}>
        ${error ? html`<p class="refusal" role="alert">${error}</p>` : null}
        ${rules.length ? html`<${Table} rules=${rules} />` : error ? null : html`<p class="note waiting" aria-busy="true">${t("Working it out…")}</p>`}
      </div>
    </div>`;
}

const Radios = ({ label, name, now, of }) => html`<div class="chips" role="radiogroup" aria-label=${label}>
  ${of.map(([value, text]) => html`<label key=${value}><input type="radio" name=${name} value=${value} checked=${value === now} onChange=${() => change({ [name]: value })} /><span>${text}</span></label>`)}
</div>`;

/* ---- sliders ---- */

const defaults = new Map(); // letter and model -> what the examples of the rules have, as it came before anything was moved

/** As few sliders as all rules of the document follow. */
function Sliders({ rules }) {
  const key = `${letter()} ${JSON.stringify(model())}`;
  const kept = defaults.get(key) ?? {};
  for (const [name, value] of rules.flatMap((rule) => Object.entries(rule.follows))) if (!(name in kept) && placed(name) === null) kept[name] = value;
  const names = NAMES.filter((name) => rules.some((rule) => name in rule.follows));
  defaults.set(key, kept);
  if (!names.length) return null;
  const isMoved = names.some((name) => placed(name) !== null);
  return html`<form class="rulesliders" aria-label=${t("Sliders")} onSubmit=${(event) => event.preventDefault()}>
    ${names.map((name) => html`<${Slider} key=${name} name=${name} usual=${kept[name] ?? null} />`)}
    <p class="note">${isMoved ? html`<button type="button" class="btn" data-key="rules back" onClick=${() => change(Object.fromEntries(NAMES.map((name) => [placeOf(name), null])))}>${t("Back to the examples")}</button>` : t("Each rule stands on its own example until a slider is moved.")}</p>
  </form>`;
}

function Slider({ name, usual }) {
  const { label, say, times = 1, unit, fine, least, most } = SLIDERS[name];
  const now = placed(name) ?? usual ?? least;
  const stops = stopsOf(name, [usual, now]);
  const set = (value) => change({ [placeOf(name)]: value === usual ? null : value });
  const typed = ({ target }) => {
    const value = Number(target.value) * times;
    const isTaken = target.value !== "" && value >= least && value <= most * 10;
    target.setAttribute("aria-invalid", String(!isTaken));
    if (isTaken) set(fine ? Math.round(value * 100) / 100 : Math.round(value));
  };
  return html`<div class="ruleslider">
    <label for=${`slide-${name}`}>${label()}</label>
    <input type="range" id=${`slide-${name}`} data-moves=${name} min="0" max=${stops.length - 1} step="1" value=${stops.indexOf(now)} aria-valuetext=${say(now)} onInput=${({ target }) => set(stops[target.value])} />
    <span class="ruletyped"><input type="number" name=${placeOf(name)} aria-label=${t("{name}, as a number", { name: label() })} min=${least / times} step="any" value=${Number((now / times).toPrecision(12))} onChange=${typed} />${unit ? html`<small>${unit}</small>` : null}</span>
  </div>`;
}

/** The values that a slider steps through, each another one: a key moves it by one. */
function stopsOf(name, more) {
  const { least, most, factors, fine } = SLIDERS[name];
  const values = new Set(more.filter((value) => value !== null));
  if (fine) for (let at = Math.round(least * 100); at <= most * 100; at += 1) values.add(at / 100);
  else if (!factors) for (let at = least; at <= most; at += 1) values.add(at);
  else for (let power = least; power <= most; power *= 2) for (const part of BETWEEN) if (power * part <= most) values.add(Math.round(power * part));
  return [...values.add(most)].sort((one, other) => one - other);
}

/* ---- the table ---- */

const rootOf = (rule) => `rule: ${rule.name}`;

/** Offers the cards of both sides of a rule; the rule's own says what its document prints, and what is wrong with it. */
function offerRule(rule) {
  const said = [
    [t("The document prints"), tr(rule.printed)], rule.model ? null : [t("Its example"), rule.example],
    rule.erratum ? [t("Erratum"), tr(rule.erratum)] : null, rule.note ? [t("Note"), tr(rule.note)] : null,
  ];
  const own = { name: rule.title, value: rule.value, unit: rule.unit, combine: "leaf", basis: "rule", formula: rule.formula, text: rule.text, source: rule.source, inputs: rule.inputs, children: [], said: said.filter(Boolean) };
  offer(rootOf(rule), { rule: own, exact: rule.exact });
  return rootOf(rule);
}

function Table({ rules }) {
  return html`<${Scroll} label=${t("Rules of thumb: table")}>
    <table class="ruletable">
      <caption class="vh">${t("Rules of thumb, beside the exact figure")}</caption>
      <thead><tr><th scope="col" class="l">${t("Rule")}</th><th scope="col">${t("the rule says")}</th><th scope="col">${t("exact")}</th><th scope="col">${t("off by")}</th></tr></thead>
      <tbody>${rules.map((rule) => html`<${Row} key=${rule.name} rule=${rule} />`)}</tbody>
    </table>
  <//>`;
}

function Row({ rule }) {
  const where = path(rootOf(rule), "rule");
  const off = rule.unit === rule.exact.unit && rule.exact.value ? rule.value / rule.exact.value - 1 : null;
  return html`<tr data-rule=${rule.name}>
    <th scope="row"><${Num} where=${where}><b>${rule.name}</b> ${tr(rule.title)}<//>
      ${rule.erratum ? html` <span class="erratum" title=${t("The document errs here")}><${Icon} kind="tight" /><span class="vh">${t("The document errs here")}</span></span>` : null}
      <code>${rule.text}</code></th>
    <td data-head=${t("the rule says")}><${Figure} where=${where} value=${rule.value} unit=${rule.unit} side="rule" /></td>
    <td data-head=${t("exact")}><${Figure} where=${path(rootOf(rule), "exact")} value=${rule.exact.value} unit=${rule.exact.unit} side="exact" /></td>
    <td data-head=${t("off by")} data-side="off">${off === null ? html`<span class="unlike">${t("not comparable")}<br />${t("The rule counts {one}, the exact figure {other}.", { one: unitOf(rule.unit), other: unitOf(rule.exact.unit) })}</span>` : html`<${Off} off=${off} />`}</td>
  </tr>`;
}

const Figure = ({ where, value, unit, side }) => html`<span data-side=${side}><${Num} where=${where}>${text(value, unit)}<//>${unit === "accelerators" ? html` <small>${tr(unit)}</small>` : unit === "bytes" ? html`<small>${fixed(value / 1e9, value < 1e10 ? 2 : 1)} GB</small>` : null}</span>`;

const HALF = 48; // pixels of the bar to either side
/** How far the rule is off, to the left where it says too little; what is further than the exact figure itself has an arrow at its end. */
function Off({ off }) {
  const long = Math.min(Math.abs(off), 1) * HALF;
  const x = off < 0 ? HALF - long : HALF;
  const end = off < 0 ? 0 : 2 * HALF;
  const beyond = Math.abs(off) > 1;
  return html`<span class="off"><span>${changed(off)}</span><svg width=${2 * HALF} height="12" aria-hidden="true">
    <rect x=${x} y="2" width=${Math.max(long, 1)} height="8" />
    ${beyond ? html`<path class="further" d=${`M${end - (off < 0 ? -6 : 6)} 1l${off < 0 ? -5 : 5} 5l${off < 0 ? 5 : -5} 5`} />` : null}
    <path class="middle" d=${`M${HALF} 0V12`} />
  </svg></span>`;
}

/** What a figure counts, where the two sides count different things. */
const unitOf = (unit) => tr(unit) || t("a plain number");

const text = (value, unit) => (unit === "seconds" ? seconds(value).join(" ") : unit === "parameters" || unit === "tokens" ? short(value) : unit === "bytes per parameter" ? `${fixed(value, 2)} B` : said(value, unit.replace(/^accelerators$/, "")));
