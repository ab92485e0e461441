/* What a search found: the plans, those that are tied said so, how the first is launched, and what was ruled out. */
import { useEffect, useState } from "../../vendor/preact.js";
import { launch } from "../api.js";
import { figure, offer, path, withdraw } from "../card.js";
import { fixed, gib, percent, said, usdApart } from "../numbers.js";
import { phrase } from "../phrases.js";
import { promptWords } from "../prompts.js";
import { change, state as inputs } from "../state.js";
import { filled, html, Icon, Num, Scroll } from "../view.js";
import { t, tr } from "../words.js";
import { errorOf, fateOfPlan, ordered } from "./plan_order.js";
import { block, broken } from "./repro.js";

// What a plan of each verb settles, so that nothing older stays beside it.
const SETTLED = {
  train: ["tensor_parallel_size", "pipeline_parallel_size", "virtual_pipeline_size", "context_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size", "data_parallel_size", "zero_stage", "micro_batch_size", "num_microbatches", "global_batch_size", "recompute", "liger", "runtime", "pipeline_schedule", "method"],
  serve: ["tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "attention_data_parallel_size", "engine", "weights", "kv_cache", "concurrency", "max_num_batched_tokens", "max_num_seqs", "prefill_replicas"],
};
const SERVED = { users: "concurrency" };
const SURE = "plan_sure"; // among the inputs: "high" shows what meets the targets at the high end of the error band

/* ---- figures with cards ---- */

const FIGURES = {
  accelerators: () => t("accelerators"), needed_bytes: () => t("memory of the fullest GPU"), run_seconds: () => t("time of the run"), step_seconds: () => t("time of a step"),
  cost: () => t("cost of the run"), mfu: () => "MFU", usd_per_million_tokens: () => t("USD per 1M tokens"), ttft_seconds: () => t("TTFT"), tpot_seconds: () => t("time per output token (TPOT)"),
  tokens_per_second: () => t("tokens a second"), usd_per_hour: () => t("USD per hour"),
};
const UNITS = { accelerators: "accelerators", needed_bytes: "bytes", mfu: "", tokens_per_second: "tokens/s", usd_per_hour: "USD", usd_per_million_tokens: "USD", cost: "USD" };
const offered = new Set();

/** Offers the cards of all figures of a search's plans; those of an older one are taken back. */
export function offerPlans(made) {
  for (const root of offered) withdraw(root);
  offered.clear();
  if (!made) return;
  const { document } = made;
  const nearest = nearestOf(document, made.verb).map(({ plan }) => plan);
  const groups = { plan: document.plans.length ? ordered(document).map(({ plan }) => plan) : nearest, front: frontOf(document, made.verb) };
  for (const [group, plans] of Object.entries(groups)) plans.forEach((plan, index) => offerPlan(`${group}: ${index + 1}`, plan));
}

function offerPlan(root, plan) {
  const known = Object.keys(FIGURES).filter((name) => typeof plan[name] === "number");
  const text = t("estimated as a whole for {machine}", { machine: plan.on });
  offer(root, Object.fromEntries(known.map((name) => [name, figure(FIGURES[name](), plan[name], UNITS[name] ?? "seconds", { text })])));
  offered.add(root);
}

/** A figure of a plan as a number with a card, or the word unknown. */
function Give({ index, plan, name, text = null, group = "plan" }) {
  const value = plan[name];
  if (value === null || value === undefined) return html`<span class="unknown">${t("unknown")}</span>`;
  return html`<${Num} where=${path(`${group}: ${index + 1}`, name)}>${text ?? said(value, UNITS[name] ?? "seconds")}<//>`;
}

/* ---- the parts ---- */

/** How many plans were looked at, in a sentence. */
export function note(document, verb) {
  const gone = document.removed.reduce((all, each) => all + each.plans, 0);
  return verb === "train"
    ? t("{looked} plans considered: {gone} invalid, {beaten} ruled out by bounds, {estimated} estimated in full", { looked: fixed(document.considered), gone: fixed(gone), beaten: fixed(document.beaten), estimated: fixed(document.estimated) })
    : t("{looked} plans of {machines} configurations considered: {gone} invalid or over a limit, {beaten} ruled out by bounds, {kept} within every limit", { looked: fixed(document.considered), machines: fixed(document.configurations), gone: fixed(gone - document.skipped), beaten: fixed(document.skipped), kept: fixed(document.kept) });
}

export function Results({ made }) {
  const { document, verb, asked } = made;
  const rows = ordered(document).map((row) => ({ ...row, fate: fateOfPlan(row.plan, asked, document) }));
  return html`
    <${Verdict} made=${made} rows=${rows} />
    ${rows.length ? html`<${Found} made=${made} rows=${rows} />` : html`<${Nearest} document=${document} verb=${verb} />`}
    <${Others} document=${document} verb=${verb} />
    <div class="planfoot">${rows.length ? html`<${Launch} made=${made} row=${rows[0]} />` : null}<${RuledOut} document=${document} verb=${verb} /></div>`;
}

// What a plan is enough for: where nothing of it was said it is only the best of its kind.
const LIMITS = ["tokens", "deadline", "budget", "ttft", "tpot", "concurrency"];
const BEST = {
  fastest: () => t("Fastest:"), cheapest: () => t("Cheapest:"), fewest: () => t("Fewest accelerators:"), cost: () => t("Least cost:"), accelerators: () => t("Fewest accelerators:"),
  tpot: () => t("Fastest tokens:"), ttft: () => t("Soonest first token:"), goodput: () => t("Most requests:"), "token-cost": () => t("Cheapest tokens:"),
};
const opening = ({ goal }, asked) => (LIMITS.some((name) => asked[name]) ? t("Enough:") : (BEST[goal]?.() ?? t("Best:")));

/** Whether what tokens cost orders the plans: then it is shown. */
const dear = (goal) => goal === "token-cost" || goal === "cheapest";

function Verdict({ made: { document, status, asked, verb }, rows }) {
  const best = rows[0]?.plan;
  const kind = status === 0 ? "fits" : status === 2 ? "tight" : "no";
  if (!best) return html`<p class="v-line small"><${Icon} kind="no" /><span><strong>${t("Not enough:")}</strong> ${document.binds ? t("no plan keeps this: {limit}", { limit: tr(document.binds) }) : t("no plan holds")}</span></p>`;
  const give = (name, text = null) => html`<${Give} index=${0} plan=${best} name=${name} text=${text} />`;
  const words = { count: filled(best.accelerators === 1 ? t("{n} accelerator") : t("{n} accelerators"), { n: give("accelerators", fixed(best.accelerators)) }), machine: best.on };
  const price = dear(document.goal) && best.usd_per_million_tokens && !best.cost ? filled(t(", {cost} per 1M tokens"), { cost: give("usd_per_million_tokens", usdApart(document.plans.map((plan) => plan.usd_per_million_tokens))(best.usd_per_million_tokens)) }) : null;
  let line;
  if (verb === "serve") line = filled(t("{count} ({machine}): first token {first}, each later one {later}, {rate} tokens/s"), { ...words, first: give("ttft_seconds"), later: give("tpot_seconds"), rate: give("tokens_per_second", fixed(best.tokens_per_second)) });
  else if (best.run_seconds && best.cost) line = filled(t("{count} ({machine}) train it in {time} for {cost}"), { ...words, time: give("run_seconds"), cost: give("cost") });
  else if (best.run_seconds) line = filled(t("{count} ({machine}) train it in {time}; the cost is unknown"), { ...words, time: give("run_seconds") });
  else line = filled(t("{count} ({machine}): a step takes {time}"), { ...words, time: give("step_seconds") });
  const sure = { fits: () => t("The targets are met at the high end of the error band."), tight: () => t("The targets are met by the estimate, not at the high end of the error band.") }[rows[0].fate];
  return html`<p class="v-line small"><${Icon} kind=${rows[0].fate === "tight" && kind === "fits" ? "tight" : kind} /><span><strong>${opening(document, asked)}</strong> ${line}${price}</span></p>${sure && html`<p class="note">${sure()}</p>`}`;
}

function Found({ made, rows }) {
  const { document, verb } = made;
  const judged = rows.some(({ fate }) => fate);
  const sure = inputs.values[SURE] === "high";
  const error = errorOf(document);
  const tied = rows.some((row) => row.tied);
  const kept = sure ? rows.filter(({ fate }) => fate === "fits") : rows;
  const choose = (value, text) => html`<label><input type="radio" name=${SURE} value=${value} checked=${sure === (value === "high")} onChange=${() => change({ [SURE]: value === "high" ? value : null })} /><span>${text}</span></label>`;
  return html`
    ${judged && html`<div class="planpick"><span id="targets-met">${t("Targets met:")}</span><div class="chips" role="radiogroup" aria-labelledby="targets-met">${choose("estimate", t("by the estimate"))}${choose("high", t("at the high end of the error band"))}</div></div>`}
    ${kept.length ? html`<${Table} rows=${kept} all=${rows} verb=${verb} goal=${document.goal} />` : html`<p>${t("None of these plans meets the targets at the high end of the error band: ask for a tighter target, or for more accelerators.")}</p>`}
    ${kept.length < rows.length && kept.length ? html`<p class="note">${t("{n} plans meet the targets by the estimate alone.", { n: rows.length - kept.length })}</p>` : null}
    ${tied && html`<p class="note">${error ? t("≈ No difference that the estimate can see (its error is −{low} to +{high}); of these the one with the fewest settings comes first.", { low: percent(1 - error[0], 0), high: percent(error[1] - 1, 0) }) : t("≈ As good by what is searched for; of these the one with the fewest settings comes first.")}</p>`}
    ${verb === "serve" && html`<p class="note">${t("TTFT: {prompts}.", { prompts: promptWords(document.question) })}</p>`}`;
}

const UNBROKEN = (text) => text.replaceAll(" ", "\u00a0");

/* Columns of each verb: [name, heading, class, cell(plan, index)]. */
function columnsOf(verb, goal, plans) {
  const paid = verb === "serve" ? (dear(goal) ? "usd_per_million_tokens" : "usd_per_hour") : plans.some((each) => each.cost) ? "cost" : "usd_per_million_tokens";
  const sum = usdApart(plans.map((plan) => plan[paid]));
  const heading = { cost: t("Cost"), usd_per_hour: t("USD per hour"), usd_per_million_tokens: t("USD per 1M tokens") }[paid];
  const give = (name, text = () => null) => (plan, index) => html`<${Give} index=${index} plan=${plan} name=${name} text=${plan[name] === null ? null : text(plan)} />`;
  const money = [heading, give(paid, (plan) => sum(plan[paid] ?? 0))];
  const memory = ["GiB", (plan, index) => html`<${Icon} kind=${plan.needed_bytes > plan.usable_bytes ? "no" : "fits"} /> ${give("needed_bytes", () => gib(plan.needed_bytes))(plan, index)}`];
  if (verb === "serve") return [[UNBROKEN("TP · PP · EP"), sizesOf], memory, ["TTFT", give("ttft_seconds")], ["TPOT", give("tpot_seconds")], [t("tokens/s"), give("tokens_per_second", (plan) => fixed(plan.tokens_per_second))], money];
  const time = plans.some((each) => each.run_seconds) ? [t("Run"), give("run_seconds")] : [t("Step"), give("step_seconds")];
  return [[UNBROKEN("TP · PP · CP · EP · DP"), sizesOf], memory, time, ["MFU", give("mfu", (plan) => percent(plan.mfu))], money];
}

const NAMED = { train: [["TP", "tensor"], ["PP", "pipeline"], ["CP", "context"], ["EP", "expert"], ["DP", "data"]], serve: [["TP", "tensor"], ["PP", "pipeline"], ["EP", "expert"]] };
/** [[letters, size]] of a plan, those that are 1 too. */
const parallelOf = (plan) => NAMED[plan.options ? "train" : "serve"].map(([letters, name]) => [letters, (plan.options ?? plan)[`${name}_parallel_size`] ?? 1]);
const sizesOf = (plan) => parallelOf(plan).map(([, size]) => size).join(" · ");

function detailsOf(plan) {
  const { options } = plan;
  if (options) return [options.runtime, options.virtual_pipeline_size > 1 ? t("{n} chunks a stage", { n: fixed(options.virtual_pipeline_size) }) : null, options.first_stage_layers ? t("first stage {n} layers", { n: fixed(options.first_stage_layers) }) : null, options.last_stage_layers ? t("last stage {n} layers", { n: fixed(options.last_stage_layers) }) : null, t("micro-batch {size}", { size: fixed(options.micro_batch_size ?? 1) }), phrase("recompute", options.recompute ?? "none"), options.liger ? "liger" : null];
  return [plan.engine, plan.weights, plan.replicas > 1 ? t("{count} replicas", { count: fixed(plan.replicas) }) : null, plan.users === null ? null : t("{count} users", { count: fixed(plan.users) })];
}

/** `all`: all rows, by whose places their cards are known. */
function Table({ rows, all = rows, verb, goal = "" }) {
  const columns = columnsOf(verb, goal, all.map(({ plan }) => plan));
  return html`<${Scroll} label=${t("{title}: table", { title: t("Best plans") })}><table class="plans">
    <caption class="vh">${t("Best plans")}</caption>
    <thead><tr><th scope="col" class="l">${t("Machine")}</th>${columns.map(([heading]) => html`<th scope="col">${heading}</th>`)}<th scope="col"><span class="vh">${t("Use")}</span></th></tr></thead>
    <tbody>${rows.map((row) => {
      const index = all.indexOf(row);
      return html`<tr key=${index}>
        <th scope="row"><span>${index + 1}</span> ${row.plan.on} ${row.tied ? html`<span class="tied">${t("≈ tied with 1")}</span>` : null}<small>${detailsOf(row.plan).filter(Boolean).join(", ")}</small></th>
        ${columns.map(([heading, cell]) => html`<td data-head=${heading}>${cell(row.plan, index)}</td>`)}
        <td class="use"><button type="button" class="btn" data-key=${`use plan ${index}`} aria-label=${t("Use plan {number}: {machine}", { number: index + 1, machine: row.plan.on })} onClick=${() => take(row.plan, verb)}>${t("Use")}</button></td>
      </tr>`;
    })}</tbody>
  </table><//>`;
}

/** The inputs of the other tab that a plan settles. */
function settledBy(plan, verb) {
  const values = Object.fromEntries(SETTLED[verb].map((name) => [name, null]));
  for (const [name, value] of Object.entries(verb === "train" ? plan.options : plan)) {
    const option = SERVED[name] ?? name;
    if ((verb === "train" || option in values) && value !== null && value !== 0) values[option] = String(value);
  }
  return values;
}

let asks = {}; // the question of the search that is shown, as its document has it
function take(plan, verb) {
  const values = settledBy(plan, verb);
  for (const name of verb === "serve" ? ["input_tokens", "output_tokens", "context"] : []) {
    const taken = asks[name]?.value; // what serve takes for these by itself may be another
    if (typeof taken === "number") values[name] = String(taken);
  }
  change({ ...values, on: plan.on, ...(verb === "serve" && inputs.values.concurrency ? { concurrency: inputs.values.concurrency } : {}) }, verb);
}

const nearestOf = (document, verb) => (verb === "serve" ? document.nearest.filter((each) => each.plan) : document.nearest ? [{ text: "", plan: document.nearest }] : []);

/** Where nothing holds: what comes nearest, and what it lacks. */
function Nearest({ document, verb }) {
  const list = nearestOf(document, verb);
  if (!list.length) return null;
  return html`<p>${t("What comes nearest:")}</p>${list.map((each) => (each.without ? html`<p class="note">${t("without {option}", { option: each.text || each.without })}</p>` : null))}<${Table} rows=${list} verb=${verb} />`;
}

const frontOf = (document, verb) => (verb === "train" ? document.front : document.pareto) ?? [];

/** Machines that no other beats, of several. */
function Others({ document, verb }) {
  const front = frontOf(document, verb);
  if (!front.length) return null;
  const sum = usdApart(front.map((plan) => plan.usd_per_million_tokens));
  const give = (plan, index, name, text) => html`<td><${Give} index=${index} plan=${plan} name=${name} text=${text} group="front" /></td>`;
  return html`<details class="fold"><summary>${t("Machines that no other beats")}</summary><${Scroll} label=${t("Machines that no other beats")}><table>
    <thead><tr><th scope="col" class="l">${t("Machine")}</th><th scope="col">${t("Accelerators")}</th><th scope="col">${t("tokens/s")}</th><th scope="col">${t("USD per 1M tokens")}</th></tr></thead>
    <tbody>${front.map((plan, index) => html`<tr><th scope="row">${plan.on}</th>${give(plan, index, "accelerators", fixed(plan.accelerators))}${give(plan, index, "tokens_per_second", fixed(plan.tokens_per_second))}${give(plan, index, "usd_per_million_tokens", sum(plan.usd_per_million_tokens ?? 0))}</tr>`)}</tbody>
  </table><//></details>`;
}

/* ---- the foot ---- */

/** How the first plan is started: all its parallel sizes, those that are 1 too, and its settings. */
function Launch({ made, row: { plan, place } }) {
  const { document, verb } = made;
  asks = document.question;
  const own = verb === "train" ? plan.launch.join(" ") : place === 0 ? (document.best?.serving?.launch ?? "") : null;
  const [asked, setAsked] = useState({ key: "", text: "" });
  const key = JSON.stringify([plan, document.question.model?.value]);
  useEffect(() => {
    if (own !== null || asked.key === key) return;
    const settled = Object.fromEntries(Object.entries(settledBy(plan, verb)).filter(([, value]) => value !== null));
    const lengths = Object.fromEntries(["input_tokens", "output_tokens", "context", "concurrency"].flatMap((name) => (typeof asks[name]?.value === "number" ? [[name, asks[name].value]] : [])));
    launch(verb, { model: made.asked.model, on: plan.on, ...settled, ...lengths }).then((found) => setAsked({ key, text: found.launch }), () => setAsked({ key, text: "" }));
  }, [key]);
  const text = own ?? (asked.key === key ? asked.text : "");
  const sizes = [...parallelOf(plan), ...(verb === "serve" ? [["DP", plan.replicas]] : [])].map(([letters, size]) => `${letters}\u00a0${fixed(size)}`).join(" · ");
  const lacks = plan.launch_lacks ?? [];
  const command = plan.text ?? (place === 0 ? document.command : "");
  return html`<section class="launch" aria-label=${t("Launch settings of plan 1")}>
    <h3>${t("Launch settings of plan 1")}</h3>
    <p class="note">${t("Parallel sizes: {sizes}", { sizes })}</p>
    ${command && html`<${Block} name=${t("Command line of plan 1")} text=${broken(command)} />`}
    ${text && html`<${Block} name=${t("Settings")} text=${broken(text)} />`}
    ${lacks.length ? html`<p class="note">${tr(text ? `not said by these settings: ${lacks.join(", ")}.` : `nothing is written down here of ${lacks[0]}.`)}</p>` : null}
  </section>`;
}

/** A command with a button that copies it. */
const Block = ({ name, text }) => html`<div ref=${(box) => box && box.replaceChildren(block(name, text))} />`;

/** What the search turned away, and why, with counts. */
function RuledOut({ document, verb }) {
  const removed = document.removed.filter((each) => each.plans);
  const more = verb === "train" && document.beaten ? [{ plans: document.beaten, words: t("do not fit, are refused or are slower, by a bound") }] : [];
  const rows = [...removed.map((each) => ({ plans: each.plans, words: tr(each.constraint) })), ...more];
  if (!rows.length && !document.warnings.length) return null;
  return html`<section class="ruledout" aria-label=${t("Ruled out")}><h3>${t("Ruled out")}</h3><p class="note">${t("What the search turned away, and why")}</p>
    <dl>${rows.map(({ plans, words }) => html`<div><dt>${words}</dt><dd>${fixed(plans)}</dd></div>`)}</dl>
    ${document.warnings.length ? html`<ul>${document.warnings.map((each) => html`<li>${tr(each)}</li>`)}</ul>` : null}</section>`;
}
