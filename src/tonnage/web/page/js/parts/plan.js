/* The best plans: what is asked for, a search that may take a while, and a table whose rows fill the other tabs. */
import { search } from "../api.js";
import { figure, number, offer, path, withdraw } from "../card.js";
import { $, $$, fill, h, icon, say, scroll, section } from "../dom.js";
import { inLabels } from "../inputs/labels.js";
import { fixed, gib, percent, said, usdApart } from "../numbers.js";
import { configOf, isPasted } from "../pasted.js";
import { promptWords } from "../prompts.js";
import { change, cluster, state as inputs } from "../state.js";
import { language, t, tr } from "../words.js";
import { later, stop } from "./later.js";

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
// What a plan of each verb settles, so that nothing older stays beside it.
const SETTLED = {
  train: ["tensor_parallel_size", "pipeline_parallel_size", "virtual_pipeline_size", "context_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size", "data_parallel_size", "zero_stage", "micro_batch_size", "num_microbatches", "global_batch_size", "recompute", "runtime", "pipeline_schedule", "method"],
  serve: ["tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "attention_data_parallel_size", "engine", "weights", "kv_cache", "concurrency", "max_num_batched_tokens", "max_num_seqs", "prefill_replicas"],
};
const SERVED = { users: "concurrency" };
const SETTLING = 400; // milliseconds without an input before a search begins

let last = null;
let progress = new Map(); // what is counted -> {done, of}
let best = null; // the best plan so far of a search that goes on
let begun = ""; // the question of which somebody began the search
let draws = () => {};

/** Whether anything was said of what the plan is for: without that no search begins by itself. */
const WISHES = ["tokens", "concurrency", "ttft", "tpot"];
const isWished = (verb) => FIELDS[verb]().some(([name]) => name in inputs.values && (name.startsWith("plan_") || WISHES.includes(name)));

/** The search whose answer stands on the tab: {document, status, command}, or null. */
export const found = () => last;

const verbNow = () => (inputs.values.plan_for === "serve" ? "serve" : "train");

/** The kind of the cluster, its number left open. */
const kind = () => cluster().replace(/^(\d+x)+/i, "");

/** The question that the inputs ask. Throws Refused where a pasted config is no JSON. */
export function question() {
  const verb = verbNow();
  const asked = { model: inputs.values.model, [verb]: true };
  if (isPasted(asked.model)) asked.model = configOf(asked.model);
  for (const [name, option] of FIELDS[verb]()) {
    const value = inputs.values[name];
    if (value) asked[option] = value;
  }
  asked.on ??= kind();
  if (asked.on.includes(",")) asked.pareto = true;
  return asked;
}

/** The inputs that ask a question of this tab; null where it has what no input is for. */
export function inputsOf(asked) {
  const { model, serve, train, pareto, ...options } = asked;
  const verb = serve ? "serve" : "train";
  const values = { model, plan_for: verb };
  for (const [name, option] of FIELDS[verb]()) {
    if (option in options) values[name] = options[option];
    delete options[option];
  }
  return Object.keys(options).length ? null : values;
}

export function draw(slot, answer, state) {
  draws = () => (draw(slot, answer, state), redrawRepro());
  const verb = verbNow();
  for (const root of offered.keys()) withdraw(root);
  offered.clear();
  if (!state.values.model) {
    section(slot, t("Best plans"), null, heading(), h("p", {}, t("Name a model, and say what it is for.")));
    return;
  }
  let asked;
  try {
    asked = question();
  } catch (error) {
    below(slot, verb, "", null, h("p", { class: "err" }, error.message));
    return;
  }
  const key = JSON.stringify(asked);
  if (!isWished(verb) && begun !== key) {
    stop("plan");
    last = null;
    return below(slot, verb, "", null, idle(key));
  }
  const box = later("plan", key, null, (signal) => searched(asked, verb, signal), draws, SETTLING);
  last = box.made?.verb === verb && !box.error ? box.made : null;
  const running = !box.current && !box.stopped;
  below(slot, verb, box.error?.message ?? "", last && box.current ? note(last.document, verb) : null, running ? waiting() : null, box.stopped ? stopped() : null,
    box.error ? h("p", { class: "err" }, icon("no"), " ", inLabels(tr(box.error.message), (option) => wish(option, verb))) : null,
    last ? h("div", { class: box.current ? null : "old" }, results(last, verb)) : null);
}

/** The inputs stay while what is below them is drawn anew: what somebody is typing is not lost when a search ends. */
function below(slot, verb, wrong, beside, ...body) {
  const now = `${language()} ${verb}`;
  if (slot.dataset.built !== now || !$(".planform", slot)) {
    section(slot, t("Best plans"), null, heading(), form(verb), h("div", { "data-found": "" }));
    slot.dataset.built = now;
  }
  refresh($(".planform", slot), verb, wrong);
  $("header .note", slot)?.remove();
  if (beside) $("header", slot).append(h("p", { class: "note" }, beside));
  $("[data-found]", slot).replaceChildren(...body.filter(Boolean));
}

/** The label of an option's input on this tab. */
const wish = (option, verb) => FIELDS[verb]().find(([, name]) => name === option)?.[2] ?? null;

/** What the page is about, where no verdict says it. */
const heading = () => h("h1", { class: "vh" }, t("Plan"));

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

/* ---- inputs ---- */

function form(verb) {
  const choose = (which, text) => h("label", {}, h("input", { type: "radio", name: "plan_for", value: which, checked: verb === which, onchange: () => change({ plan_for: which }) }), h("span", {}, text));
  return h("div", { class: "planform" },
    h("div", { class: "chips", role: "radiogroup", "aria-label": t("What for") }, choose("train", t("Train")), choose("serve", t("Serve"))),
    h("div", { class: "wishes" }, FIELDS[verb]().map(field)));
}

function field([name, , text, unit]) {
  const send = ({ target }) => target.value.trim() !== (inputs.values[name] ?? "") && change({ [name]: target.value.trim() });
  const box = Array.isArray(unit)
    ? h("select", { name, onchange: send }, unit.map(([each, said]) => h("option", { value: each }, said)))
    : h("input", { name, autocomplete: "off", spellcheck: "false", onchange: send });
  return h("label", { class: "wish" }, h("span", {}, text), box, h("small", {}, Array.isArray(unit) ? AUTOMATIC[verbNow()]() : unit));
}

/** What is set, but not under a hand that types. */
function refresh(form, verb, wrong) {
  for (const box of $$(".wish input, .wish select", form)) {
    const value = inputs.values[box.name] ?? "";
    if (box !== document.activeElement || box.tagName === "SELECT") box.value = value;
    if (box.name === "plan_on") box.placeholder = kind();
    box.parentNode.toggleAttribute("data-set", Boolean(value));
    const [, option] = FIELDS[verb]().find(([each]) => each === box.name);
    if (about(option, wrong)) box.setAttribute("aria-invalid", "true");
    else box.removeAttribute("aria-invalid");
  }
}

/** Whether a message begins with the name of an option. */
const about = (option, message) => message.replace(/^--/, "").replaceAll("-", "_").startsWith(`${option} `);

/* ---- a search that goes on ---- */

function waiting() {
  const cancel = h("button", { type: "button", class: "btn", "data-key": "cancel plan", onclick: () => (stop("plan"), draws()) }, t("Cancel"));
  return h("div", { class: "searching" }, h("progress", { "aria-label": t("Search") }), h("span", { "data-counts": "" }, counts()), cancel, h("p", { "data-best": "" }, soFar()));
}

/** Before a search: what it would look for, and the button that begins it. */
function idle(key) {
  const begin = () => {
    begun = key;
    stop("plan", false);
    draws();
  };
  return h("p", { class: "searching" }, h("span", {}, t("Say what the plan is for, or search as it is.")), h("button", { type: "button", class: "btn go", "data-key": "search plan", onclick: begin }, t("Search")));
}

function stopped() {
  return h("p", { class: "searching" }, h("span", {}, t("The search was cancelled.")), h("button", { type: "button", class: "btn go", "data-key": "search plan", onclick: () => (stop("plan", false), draws()) }, t("Search")));
}

const COUNTED = { machines: () => t("machines"), configurations: () => t("configurations"), plans: () => t("plans"), estimated: () => t("estimated") };

const counts = () => [whole() ? percent(whole().done / whole().of) : "", listed()].filter(Boolean).join(": ");

const listed = () => [...progress.values()].map(({ what, done, of }) => (of ? t("{what}: {done} of {all}", { what: COUNTED[what]?.() ?? tr(what), done: fixed(done), all: fixed(of) }) : `${COUNTED[what]?.() ?? tr(what)}: ${fixed(done)}`)).join("; ") || t("Looking at plans…");

/** The count that says how far the search is: plans, where their number is known before the end. */
const whole = () => [progress.get("plans"), ...progress.values()].find((each) => each?.of);

/** The best plan of a search that goes on, in a sentence. */
const soFar = () => (best ? t("Best so far: {machine}, a step takes {time}", { machine: best.on, time: said(best.step_seconds, "seconds") }) : "");

function tell() {
  const bar = $(".searching progress");
  if (!bar) return;
  $("[data-counts]").textContent = counts();
  $("[data-best]").textContent = soFar();
  const known = whole();
  if (known) [bar.max, bar.value] = [known.of, known.done];
}

/* ---- what was found ---- */

function note(document, verb) {
  const looked = document.considered;
  const gone = document.removed.reduce((all, each) => all + each.plans, 0);
  return verb === "train"
    ? t("{looked} plans looked at; {gone} cannot be, {beaten} do not fit, are refused or are slower and were not estimated in full, {estimated} fit and were estimated whole", { looked: fixed(looked), gone: fixed(gone), beaten: fixed(document.beaten), estimated: fixed(document.estimated) })
    : t("{looked} plans of {machines} machines and settings looked at; {gone} cannot be or do not hold, {beaten} are beaten by a bound, {kept} hold", { looked: fixed(looked), machines: fixed(document.configurations), gone: fixed(gone - document.skipped), beaten: fixed(document.skipped), kept: fixed(document.kept) });
}

function results(made, verb) {
  const { document } = made;
  const { plans } = document;
  return [verdict(made, verb), plans.length ? [table(plans, verb, document.goal), promptNote(document, verb)] : nearest(document, verb), others(document, verb), left(document)];
}

function verdict({ document, status, asked }, verb) {
  const best = document.plans[0];
  const mark = status === 0 ? "fits" : status === 2 ? "tight" : "no";
  if (!best) return h("p", { class: "v-line small" }, icon("no"), h("span", {}, h("strong", {}, t("Not enough:")), " ", document.binds ? t("no plan keeps this: {limit}", { limit: tr(document.binds) }) : t("no plan holds")));
  const words = { count: fill(best.accelerators === 1 ? t("{n} accelerator") : t("{n} accelerators"), { n: count(best, 0) }), machine: best.on };
  let line;
  if (verb === "serve") line = fill(t("{count} ({machine}): first token {first}, each later one {later}, {rate} tokens/s"), { ...words, first: give(0, best, "ttft_seconds", "seconds"), later: give(0, best, "tpot_seconds", "seconds"), rate: give(0, best, "tokens_per_second", "tokens/s", fixed(best.tokens_per_second)) });
  else if (best.run_seconds && best.cost) line = fill(t("{count} ({machine}) train it in {time} for {cost}"), { ...words, time: give(0, best, "run_seconds", "seconds"), cost: give(0, best, "cost", "USD") });
  else if (best.run_seconds) line = fill(t("{count} ({machine}) train it in {time}; the cost is unknown"), { ...words, time: give(0, best, "run_seconds", "seconds") });
  else line = fill(t("{count} ({machine}): a step takes {time}"), { ...words, time: give(0, best, "step_seconds", "seconds") });
  return h("p", { class: "v-line small" }, icon(mark), h("span", {}, h("strong", {}, opening(document, asked)), " ", line, dear(document.goal) && best.usd_per_million_tokens && !best.cost ? fill(t(", {cost} per 1M tokens"), { cost: give(0, best, "usd_per_million_tokens", "USD", usdApart(document.plans.map((plan) => plan.usd_per_million_tokens))(best.usd_per_million_tokens)) }) : null));
}

// What a plan is enough for: where nothing of it was said it is only the best of its kind.
const LIMITS = ["tokens", "deadline", "budget", "ttft", "tpot", "concurrency"];
const BEST = {
  fastest: () => t("Fastest:"), cheapest: () => t("Cheapest:"), fewest: () => t("Fewest accelerators:"), cost: () => t("Least cost:"), accelerators: () => t("Fewest accelerators:"),
  tpot: () => t("Fastest tokens:"), ttft: () => t("Soonest first token:"), goodput: () => t("Most requests:"), "token-cost": () => t("Cheapest tokens:"),
};

const opening = ({ goal }, asked) => (LIMITS.some((name) => asked[name]) ? t("Enough:") : (BEST[goal]?.() ?? t("Best:")));

const FIGURES = {
  accelerators: () => t("accelerators"), needed_bytes: () => t("memory of the fullest GPU"), run_seconds: () => t("time of the run"), step_seconds: () => t("time of a step"),
  cost: () => t("cost of the run"), mfu: () => "MFU", usd_per_million_tokens: () => t("USD per 1M tokens"), ttft_seconds: () => t("TTFT"), tpot_seconds: () => t("time per output token (TPOT)"),
  tokens_per_second: () => t("tokens a second"), usd_per_hour: () => t("USD per hour"),
};

/** A figure of a plan as a number with a card, or the word unknown. */
function give(index, plan, name, unit, text = null, group = "plan") {
  const value = plan[name];
  if (value === null || value === undefined) return h("span", { class: "unknown" }, t("unknown"));
  const root = `${group}: ${index + 1}`;
  offered.set(root, { ...offered.get(root), [name]: figure(FIGURES[name](), value, unit, { text: t("estimated as a whole for {machine}", { machine: plan.on }) }) });
  offer(root, offered.get(root));
  return number(path(root, name), text ?? said(value, unit));
}
const offered = new Map();

const count = (plan, index, group = "plan") => give(index, plan, "accelerators", "accelerators", fixed(plan.accelerators), group);

/** Whether what tokens cost orders the plans: then it is shown. */
const dear = (goal) => goal === "token-cost" || goal === "cheapest";

/** What the times to the first token are of. */
const promptNote = (document, verb) => (verb === "serve" ? h("p", { class: "note" }, t("TTFT: {prompts}.", { prompts: promptWords(document.question) })) : null);

function table(plans, verb, goal = "") {
  const time = plans.some((each) => each.run_seconds) ? t("Run") : t("Step");
  const price = plans.some((each) => each.cost) ? t("Cost") : t("USD per 1M tokens");
  const heads = verb === "train"
    ? [[t("Machine"), "l"], [UNBROKEN("TP · PP · CP · EP · DP"), "opt"], ["GiB", ""], [time, ""], ["MFU", "opt"], [price, "opt"]]
    : [[t("Machine"), "l"], [UNBROKEN("TP · PP · EP"), "opt"], ["GiB", ""], ["TTFT", "opt"], ["TPOT", ""], [t("tokens/s"), "opt"], [dear(goal) ? t("USD per 1M tokens") : t("USD per hour"), "opt"]];
  const paid = verb === "serve" ? (dear(goal) ? "usd_per_million_tokens" : "usd_per_hour") : plans.some((each) => each.cost) ? "cost" : "usd_per_million_tokens";
  const sum = usdApart(plans.map((plan) => plan[paid]));
  const money = (plan, index) => h("td", { class: "opt" }, give(index, plan, paid, "USD", sum(plan[paid] ?? 0)));
  const head = h("tr", {}, heads.map(([text, cls]) => h("th", { scope: "col", class: cls || null }, text)), h("th", { scope: "col" }, h("span", { class: "vh" }, t("Use"))));
  return scroll(t("{title}: table", { title: t("Best plans") }), h("table", { class: "plans" }, h("caption", { class: "vh" }, t("Best plans")), h("thead", {}, head), h("tbody", {}, plans.map((plan, index) => (verb === "train" ? trained : served)(plan, index, money(plan, index))))));
}

/** Fits, or so nearly not that the error band reaches over the line. */
const mark = (plan) => icon(plan.needed_bytes > plan.usable_bytes ? "no" : "fits");
const memory = (plan, index, group) => [mark(plan), " ", give(index, plan, "needed_bytes", "bytes", gib(plan.needed_bytes), group)];

function use(plan, verb, index) {
  return h("td", {}, h("button", { type: "button", class: "btn", "data-key": `use plan ${index}`, "aria-label": t("Use plan {number}: {machine}", { number: index + 1, machine: plan.on }), onclick: () => take(plan, verb) }, t("Use")));
}

function take(plan, verb) {
  const values = Object.fromEntries(SETTLED[verb].map((name) => [name, null]));
  const settled = verb === "train" ? plan.options : plan;
  for (const [name, value] of Object.entries(settled)) {
    const option = SERVED[name] ?? name;
    if ((verb === "train" || option in values) && value !== null && value !== 0) values[option] = String(value);
  }
  for (const name of verb === "serve" ? ["input_tokens", "output_tokens", "context"] : []) {
    const said = last?.document.question[name]?.value; // what serve takes for these by itself may be another
    if (typeof said === "number") values[name] = String(said);
  }
  change({ ...values, on: plan.on, ...(verb === "serve" && inputs.values.concurrency ? { concurrency: inputs.values.concurrency } : {}) }, verb);
}

const UNBROKEN = (text) => text.replaceAll(" ", "\u00a0");

const machine = (plan, sizes, ...details) => h("th", { scope: "row" }, plan.on, h("small", { class: "narrow" }, sizes), h("small", {}, details.join(", ")));

function trained(plan, index, money) {
  const { options } = plan;
  const sizes = ["tensor", "pipeline", "context", "expert", "data"].map((name) => options[`${name}_parallel_size`] ?? 1).join(" · ");
  const details = [options.runtime, t("micro-batch {size}", { size: fixed(options.micro_batch_size ?? 1) }), t("recompute {policy}", { policy: tr(options.recompute ?? "none") })].filter(Boolean);
  return h("tr", {}, machine(plan, sizes, ...details), h("td", { class: "opt" }, sizes), h("td", {}, memory(plan, index)),
    h("td", {}, plan.run_seconds ? give(index, plan, "run_seconds", "seconds") : give(index, plan, "step_seconds", "seconds")), h("td", { class: "opt" }, give(index, plan, "mfu", "", plan.mfu === null ? "" : percent(plan.mfu))),
    money, use(plan, "train", index));
}

function served(plan, index, money) {
  const sizes = [plan.tensor_parallel_size, plan.pipeline_parallel_size, plan.expert_parallel_size].join(" · ");
  const details = [plan.engine, plan.weights, plan.replicas > 1 ? t("{count} replicas", { count: fixed(plan.replicas) }) : null, plan.users === null ? null : t("{count} users", { count: fixed(plan.users) })].filter(Boolean);
  return h("tr", {}, machine(plan, sizes, ...details), h("td", { class: "opt" }, sizes), h("td", {}, memory(plan, index)),
    h("td", { class: "opt" }, give(index, plan, "ttft_seconds", "seconds")), h("td", {}, give(index, plan, "tpot_seconds", "seconds")), h("td", { class: "opt" }, give(index, plan, "tokens_per_second", "tokens/s", fixed(plan.tokens_per_second))),
    money, use(plan, "serve", index));
}

/** Where nothing holds: what comes nearest, and what it lacks. */
function nearest(document, verb) {
  const list = verb === "serve" ? document.nearest.filter((each) => each.plan) : document.nearest ? [{ text: "", plan: document.nearest }] : [];
  if (!list.length) return null;
  return [h("p", {}, t("What comes nearest:")), list.map((each) => (each.without ? h("p", { class: "note" }, t("without {option}", { option: each.text || each.without })) : null)), table(list.map((each) => each.plan), verb)];
}

/** Machines that no other beats, of several. */
function others(document, verb) {
  const front = (verb === "train" ? document.front : document.pareto) ?? [];
  if (!front.length) return null;
  const sum = usdApart(front.map((plan) => plan.usd_per_million_tokens));
  const rows = front.map((plan, index) => h("tr", {}, h("th", { scope: "row" }, plan.on), h("td", {}, count(plan, index, "front")), h("td", {}, give(index, plan, "tokens_per_second", "tokens/s", fixed(plan.tokens_per_second), "front")), h("td", {}, give(index, plan, "usd_per_million_tokens", "USD", sum(plan.usd_per_million_tokens ?? 0), "front"))));
  return h("details", { class: "fold" }, h("summary", {}, t("Machines that no other beats")), scroll(t("Machines that no other beats"), h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "l" }, t("Machine")), h("th", { scope: "col" }, t("Accelerators")), h("th", { scope: "col" }, t("tokens/s")), h("th", { scope: "col" }, t("USD per 1M tokens")))), h("tbody", {}, rows))));
}

function left(document) {
  const removed = document.removed.filter((each) => each.plans);
  if (!removed.length && !document.warnings.length) return null;
  return h("details", { class: "fold" }, h("summary", {}, t("What was left out, and why")),
    h("ul", {}, removed.map((each) => h("li", {}, t("{count} plans: {limit}", { count: fixed(each.plans), limit: tr(each.constraint) }))), document.warnings.map((each) => h("li", {}, tr(each)))));
}
