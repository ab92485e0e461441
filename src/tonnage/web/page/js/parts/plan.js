/* The best plans: what is asked for, a search that somebody begins and may cancel, and what it found (plan_results.js). */
import { search } from "../api.js";
import { say } from "../dom.js";
import { inLabels } from "../inputs/labels.js";
import { openSlot } from "../inputs/question.js";
import { fixed, percent, said } from "../numbers.js";
import { configOf, isPasted } from "../pasted.js";
import { change, cluster, state as inputs } from "../state.js";
import { useState } from "../../vendor/preact.js";
import { drawInto, html, Icon } from "../view.js";
import { t, tr } from "../words.js";
import { later, stop } from "./later.js";
import { note, offerPlans, Results } from "./plan_results.js";

/* Which goal is taken where none was chosen. */
const AUTOMATIC = { train: () => t("automatic: fastest of one machine, cheapest of several"), serve: () => t("automatic: least cost, without prices fewest GPUs") };

/* [state's name, option, label, unit or choices]. Names that begin with plan_ are of this tab alone. */
const FIELDS = {
  train: () => [
    ["plan_on", "on", t("Machines"), t("names with commas; 8x sets a number")],
    ["plan_goal", "goal", t("Goal"), [["", t("automatic")], ["fastest", t("fastest")], ["cheapest", t("cheapest")], ["fewest", t("fewest accelerators")]]],
    ["tokens", "tokens", t("Training tokens"), t("such as 100B")],
    ["plan_deadline", "deadline", t("Deadline"), t("such as 30d")],
    ["plan_budget", "budget", t("Budget"), t("USD, such as 100k")],
    ["sequence_length", "sequence_length", t("Sequence length"), t("tokens")],
    ["global_batch_size", "global_batch_size", t("Global batch size"), t("sequences")],
    ["plan_most", "max_accelerators", t("At most"), t("accelerators")],
  ],
  serve: () => [
    ["plan_on", "on", t("Machines"), t("names with commas; 8x sets a number")],
    ["plan_aim", "goal", t("Goal"), [["", t("automatic")], ["cost", t("least cost")], ["accelerators", t("fewest accelerators")], ["tpot", t("fastest tokens")], ["ttft", t("soonest first token")], ["goodput", t("most requests")], ["token-cost", t("cheapest tokens")]]],
    ["concurrency", "concurrency", t("Concurrent users"), t("users")],
    ["ttft", "ttft", t("First token within"), t("such as 500ms")],
    ["tpot", "tpot", t("Each token within"), t("such as 30ms")],
    ["input_tokens", "input_tokens", t("Input length"), t("tokens")],
    ["output_tokens", "output_tokens", t("Output length"), t("tokens")],
    ["plan_rent", "budget", t("Budget"), t("USD an hour; 500/day")],
    ["plan_most", "max_accelerators", t("At most"), t("accelerators")],
  ],
};
/* What the fields hold before anybody touched one: a question that can be searched as it is. */
const FILLED = {
  train: () => ({ plan_on: kind(), tokens: "1T", plan_deadline: "30d" }),
  serve: () => ({ plan_on: kind(), concurrency: "64", ttft: "2s", tpot: "50ms", input_tokens: "1024", output_tokens: "1024" }),
};
/* What a plan is for: who said any of it is filled in nothing more. */
const WISHES = { train: ["tokens", "plan_deadline", "plan_budget", "plan_goal", "plan_most"], serve: ["concurrency", "ttft", "tpot", "plan_aim", "plan_rent", "plan_most"] };
const IN_SENTENCE = "plan_on"; // has a slot above
const BEGUN = "plan_go"; // among the inputs: which question somebody began a search for

let last = null;
let progress = new Map(); // what is counted -> {done, of}
let best = null; // the best plan so far of a search that goes on
let draws = () => {};

/** The search whose answer stands on the tab: {document, status, command}, or null. */
export const found = () => last;

const verbNow = () => (inputs.values.plan_for === "serve" ? "serve" : "train");

/** The kind of the cluster, its number left open. */
const kind = () => cluster().replace(/^(\d+x)+/i, "");

/** What is filled in: the machine always, the rest for who has said nothing of what the plan is for. */
function filled() {
  const isSaid = [BEGUN, ...WISHES[verbNow()]].some((name) => name in inputs.values);
  return Object.fromEntries(Object.entries(FILLED[verbNow()]()).filter(([name]) => !(name in inputs.values) && (name === "plan_on" || !isSaid)));
}

/** The question that the inputs ask. Throws Refused where a pasted config is no JSON. */
export function question() {
  const verb = verbNow();
  const asked = { model: inputs.values.model, [verb]: true };
  if (isPasted(asked.model)) asked.model = configOf(asked.model);
  const values = { ...filled(), ...inputs.values };
  for (const [name, option] of FIELDS[verb]()) if (values[name]) asked[option] = values[name];
  if (asked.on.includes(",")) asked.pareto = true;
  return asked;
}

/** The inputs that ask a question of this tab, and search it; null where it has what no input is for. */
export function inputsOf(asked) {
  const { model, serve, train, pareto, ...options } = asked;
  const verb = serve ? "serve" : "train";
  const values = { model, plan_for: verb };
  for (const [name, option] of FIELDS[verb]()) {
    if (option in options) values[name] = options[option];
    delete options[option];
  }
  return Object.keys(options).length ? null : { ...values, [BEGUN]: markOf(asked) };
}

/** A few letters that another question hardly has: a link searches what was searched, and nothing else. */
function markOf(asked) {
  let sum = 5381;
  for (const letter of JSON.stringify(Object.entries(asked).map(([name, value]) => [name, String(value)]).sort())) sum = (Math.imul(sum, 33) ^ letter.codePointAt(0)) >>> 0;
  return sum.toString(36);
}

export function draw(slot, answer, state) {
  draws = () => (draw(slot, answer, state), redrawRepro());
  const verb = verbNow();
  const shown = { verb, wrong: "", running: false, stopped: false, current: false };
  let asked = null;
  if (state.values.model) {
    try {
      asked = question();
    } catch (error) {
      shown.wrong = error.message;
    }
  }
  const key = asked && JSON.stringify(asked);
  if (asked && inputs.values[BEGUN] === markOf(asked)) {
    const box = later("plan", key, null, (signal) => searched(asked, verb, signal), draws, 0);
    Object.assign(shown, { running: !box.current && !box.stopped, stopped: box.stopped, current: box.current, wrong: box.error?.message ?? "" });
    last = box.made && !box.error ? box.made : null;
  } else {
    stop("plan");
  }
  if (last && last.verb !== verb) last = null;
  offerPlans(last);
  drawInto(slot, html`<${Plan} ...${shown} asked=${asked} made=${last} hasModel=${Boolean(state.values.model)} />`);
}

/** The footer tells how to ask the same: it is drawn once more when there is a new answer. */
function redrawRepro() {
  document.dispatchEvent(new CustomEvent("planned"));
}

async function searched(asked, verb, signal) {
  progress = new Map();
  best = null;
  const made = await search("plan", asked, signal, (step) => {
    if (step.best) best = step.best;
    else progress.set(step.what, step);
    tell();
  });
  say(t("The search has ended."));
  return { ...made, verb, asked };
}

let tell = () => {}; // draws how far the search is

/* ---- what is on the tab ---- */

function Plan({ verb, asked, wrong, running, stopped, current, made, hasModel }) {
  const told = wrong ? inLabels(tr(wrong), (option) => FIELDS[verb]().find(([, name]) => name === option)?.[2] ?? null) : "";
  return html`
    <h1 class="vh">${t("Plan")}</h1>
    <header><h2 id="h-plan">${t("Best plans")}</h2>${made && current ? html`<p class="note">${note(made.document, verb)}</p>` : null}</header>
    ${hasModel ? null : html`<p>${t("Name a model, and say what it is for.")}</p>`}
    ${hasModel && html`<${Form} verb=${verb} wrong=${wrong} asked=${asked} running=${running} />`}
    ${running && html`<${Searching} />`}
    ${!running && asked && !current && !wrong && html`<p class="note">${stopped ? t("The search was cancelled.") : made ? t("Another question was searched: what is below answers that.") : t("Nothing is searched until you say so.")}</p>`}
    ${told && html`<p class="refusal" role="alert"><${Icon} kind="no" /> ${told}${about("on", wrong) ? html` <button type="button" class="btn" onClick=${() => openSlot("places")}>${t("Machines")}</button>` : null}</p>`}
    ${made && html`<div class=${current ? null : "old"}><${Results} made=${made} /></div>`}`;
}

function Form({ verb, wrong, asked, running }) {
  const go = (event) => {
    event.preventDefault();
    document.activeElement?.dispatchEvent(new Event("change", { bubbles: true })); // what is typed and not yet sent
    stop("plan", false);
    change({ ...filled(), [BEGUN]: markOf(question()) });
  };
  return html`<form class="planform" onSubmit=${go} novalidate>
    <div class="wishes">${FIELDS[verb]().filter(([name]) => name !== IN_SENTENCE).map((field) => html`<${Field} key=${field[0]} field=${field} verb=${verb} wrong=${wrong} />`)}</div>
    <p class="searching"><button type="submit" class="btn go" data-key="search plan" disabled=${running || !asked}>${t("Search")}</button></p>
  </form>`;
}

/** An input of the search. What is typed stays while it is typed, whatever is drawn anew. */
function Field({ field: [name, option, text, unit], verb, wrong }) {
  const [draft, setDraft] = useState(null);
  const value = draft ?? inputs.values[name] ?? filled()[name] ?? "";
  const send = ({ target }) => {
    setDraft(null);
    const typed = target.value.trim();
    if (typed !== (inputs.values[name] ?? filled()[name] ?? "")) change({ ...filled(), [name]: typed });
  };
  const more = { name, value, onChange: send, "aria-invalid": about(option, wrong) ? "true" : null, "aria-describedby": `about-${name}` };
  return html`<label class="wish" data-set=${value ? "" : null}><span>${text}</span>
    ${Array.isArray(unit) ? html`<select ...${more}>${unit.map(([each, words]) => html`<option value=${each}>${words}</option>`)}</select>` : html`<input ...${more} autocomplete="off" spellcheck="false" onInput=${({ target }) => setDraft(target.value)} />`}
    <small id=${`about-${name}`}>${Array.isArray(unit) ? AUTOMATIC[verb]() : unit}</small></label>`;
}

/** Whether a message begins with the name of an option. */
const about = (option, message) => [" ", ":"].some((after) => message.replace(/^--/, "").replaceAll("-", "_").startsWith(option + after));

/* ---- a search that goes on ---- */

function Searching() {
  const [, again] = useState(0);
  tell = () => again((count) => count + 1);
  const known = whole();
  return html`<div class="searching">
    <div class="how-far"><b>${known ? percent(known.done / known.of, 0) : t("Searching")}</b> <span data-counts>${counts()}</span>
      <progress aria-label=${t("Search")} max=${known?.of ?? null} value=${known ? known.done : null} /></div>
    <button type="button" class="btn" data-key="cancel plan" onClick=${() => (stop("plan"), draws())}>${t("Cancel")}</button>
    <p data-best>${soFar()}</p>
  </div>`;
}

const COUNTED = { machines: () => t("machines"), configurations: () => t("configurations"), plans: () => t("plans"), estimated: () => t("estimated") };

const counts = () => [...progress.values()].map(({ what, done, of }) => (of ? t("{what}: {done} of {all}", { what: COUNTED[what]?.() ?? tr(what), done: fixed(done), all: fixed(of) }) : `${COUNTED[what]?.() ?? tr(what)}: ${fixed(done)}`)).join("; ") || t("Looking at plans…");

/** The count that says how far the search is: plans, where their number is known before the end. */
const whole = () => [progress.get("plans"), ...progress.values()].find((each) => each?.of);

/** The best plan of a search that goes on, in a sentence. */
const soFar = () => (best ? t("Best so far: {machine}, a step takes {time}", { machine: best.on, time: said(best.step_seconds, "seconds") }) : "");
