/* The fewest accelerators of each kind on which the workload fits, and what their hours cost. A row takes over its machine. */
import { accelerators, ask, prices } from "../api.js";
import { figure, number, offer, path } from "../card.js";
import { h, icon, scroll, section } from "../dom.js";
import { fixed, gib, said, usdApart } from "../numbers.js";
import { change } from "../state.js";
import { t, tr } from "../words.js";
import { later, settled, shown, without } from "./later.js";

const USUAL = ["H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "MI300X", "A100-SXM-80GB", "L40S", "RTX-4090"];
// What says how many accelerators there are, or follows from that.
const SIZES = ["on", "data_parallel_size", "num_microbatches", "price_per_accelerator_hour", "provider", "replicate_size"];
const SERVING_SIZES = ["tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "attention_data_parallel_size"];

const DIVIDED = 64; // sequences of a batch that any usual number of ranks divides
const DOUBLED = 6; // how often a fixed layout is doubled

let all = false;

export function draw(slot, answer, state) {
  if (!answer) return slot.replaceChildren();
  const again = () => draw(slot, answer, state);
  const out = [...SIZES, ...(answer.verb === "serve" ? SERVING_SIZES : [])];
  // A row has what was chosen for the answer, and takes it over with its machine.
  const load = { ...without(answer.document.chosen?.change ?? {}, ...out), ...workload(answer) };
  const question = { ...without(settled(answer), ...out), ...load };
  if (answer.verb === "train") question.train = true;
  const now = kindOf(answer.document.question.on?.value);
  const key = JSON.stringify([question, all, now]);
  const asked = later("accelerators", key, answer.signal, (signal) => fewest(question, now, layout(answer), signal), again, 450);
  const more = h("button", { type: "button", class: "btn", "data-key": "all accelerators", "aria-pressed": String(all), onclick: () => ((all = !all), again()) }, all ? t("The usual ones") : t("All accelerators"));
  section(slot, t("Accelerators and prices"), about(load), shown(asked, (made) => table(made, now, load)), more);
}

/** What depends on the machine where nobody says it: every row is asked for as much as the answer was, or its time and price are of something else. */
function workload({ verb, document: { question, verdict } }) {
  if (verb === "train") return question.global_batch_size ? { global_batch_size: batch(question.global_batch_size, verdict.fits) } : {};
  return question.concurrency && !question.request_rate && !question.trace ? { concurrency: question.concurrency.value } : {};
}

/** That of the answer. Where it does not fit and nobody said how large it is, one that can be divided among many ranks: a batch of one sequence
    keeps every larger machine out. */
const batch = ({ value, from }, fits) => (fits === false && from !== "given" ? Math.max(value, DIVIDED) : value);

function about({ global_batch_size: batch, concurrency: users }) {
  const prices = t("On-demand list prices, of one provider where it has all these machines");
  const which = batch ? t("Fewest on which this workload fits, all with a global batch of {batch}", { batch: fixed(batch) }) : users === 1 ? t("Fewest on which this workload fits, all for one user alone") : users ? t("Fewest on which this workload fits, all for {users} users at once", { users: fixed(users) }) : t("Fewest on which this workload fits");
  return t("{one}. {two}", { one: which, two: prices });
}

/** H100-SXM-80GB of 8x8xH100-SXM-80GB. */
const kindOf = (cluster) => String(cluster ?? "").replace(/^(\d+x)+/, "");

/** Accelerators of one replica: those of parallel sizes that were set stand for any number of replicas. */
function layout({ verb, question }) {
  if (verb === "serve") return 1;
  return ["tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size"].reduce((product, name) => product * Number(question[name] ?? 1), 1);
}

async function fewest(question, now, replica, signal) {
  const names = all ? (await accelerators()).accelerators.map((each) => each.name) : USUAL;
  const on = [...new Set([...names, ...(now && !all ? [now] : [])])];
  const count = replica === 1 ? "fewest" : Array.from({ length: DOUBLED }, (_, power) => replica * 2 ** power);
  const [{ document }, list] = await Promise.all([ask("compare", { ...question, on, count }, signal), prices().catch(() => null)]);
  return { document, prices: list, kind: question.price_kind ?? "on-demand", cells: replica === 1 ? document.cells : smallest(document.cells) };
}

const FIT = ["fits", "tight", "not served"];

/** Of the cells of each accelerator the first that fits, or the last that was tried. */
function smallest(cells) {
  const kinds = Map.groupBy(cells, (cell) => cell.accelerator);
  return [...kinds.values()].map((each) => each.find((cell) => FIT.includes(cell.verdict)) ?? each.findLast((cell) => cell.needed_bytes) ?? each.at(-1));
}

/** The offer that a cell was priced by. */
function offerOf(cell, list, kind) {
  return list?.prices.find((row) => row.kind === kind && cell.price === `${row.provider} ${row.instance}, ${row.region}` && cell.accelerator === row.accelerator) ?? null;
}

function table({ document, prices: list, kind, cells }, now, load) {
  const serve = document.verb === "serve";
  const runs = cells.some((cell) => cell.run_usd || cell.run_seconds);
  const heads = [[t("Accelerator"), "l"], [t("Usable GiB"), "opt"], [t("Fewest"), ""], [serve ? t("Token") : runs ? t("Run") : t("Step"), "opt"], [t("USD/h each"), ""], [serve ? t("USD per 1M tokens") : runs ? t("Cost, USD") : t("USD per 1B tokens"), ""], [t("As of"), "opt"]];
  const sum = usdApart(cells.filter((cell) => FIT.includes(cell.verdict)).map((cell) => costOf(cell, serve, runs)));
  const rows = cells.map((cell) => row(cell, { serve, runs, list, now, kind, sum, load }));
  return scroll(t("{title}: table", { title: t("Accelerators and prices") }), h("table", { class: "takes" }, h("thead", {}, h("tr", {}, heads.map(([text, cls]) => h("th", { scope: "col", class: cls || null }, text)))), h("tbody", {}, rows)));
}

const costOf = (cell, serve, runs) => (serve ? cell.usd_per_million_tokens : runs ? cell.run_usd : cell.usd_per_billion_tokens);

function row(cell, { serve, runs, list, now, kind, sum, load }) {
  const root = `machine: ${cell.accelerator}`;
  const found = offerOf(cell, list, kind);
  const fits = FIT.includes(cell.verdict);
  const made = {};
  offer(root, made);
  const given = (key, name, value, unit, shown, how) => {
    if (value === null || value === undefined) return h("span", { class: "unknown" }, t("unknown"));
    made[key] = figure(name, value, unit, how);
    return number(path(root, key), shown);
  };
  const each = found?.usd_per_accelerator_hour ?? (cell.usd_per_hour && cell.accelerators_paid ? cell.usd_per_hour / cell.accelerators_paid : null);
  const time = serve ? cell.tpot_seconds : runs ? cell.run_seconds : cell.step_seconds;
  const cost = costOf(cell, serve, runs);
  const source = found ? `${found.source}, ${found.as_of}` : (cell.price ?? "");
  const estimated = { text: t("estimated as a whole for {machine}", { machine: cell.on }) };
  const take = () => change({ ...load, on: cell.on, data_parallel_size: null, num_microbatches: null, ...(serve ? { tensor_parallel_size: null, pipeline_parallel_size: cell.pipeline_parallel_size > 1 ? cell.pipeline_parallel_size : null } : {}) });
  const name = h("button", { type: "button", class: "take", "data-key": root, "aria-label": t("{name}: apply {machine}", { name: cell.accelerator, machine: cell.on }), title: t("Apply"), disabled: !fits, onclick: take }, cell.accelerator);
  const rented = cell.accelerators_paid > cell.accelerators ? h("small", { title: t("{paid} accelerators are paid for: they are rented as a whole machine", { paid: fixed(cell.accelerators_paid) }) }, " ", t("({paid} paid)", { paid: fixed(cell.accelerators_paid) })) : null;
  const count = fits ? [cell.verdict === "tight" ? [icon("tight"), " "] : null, given("accelerators", t("accelerators"), cell.accelerators, "accelerators", fixed(cell.accelerators), { text: t("the fewest of this kind on which the workload fits") }), rented] : noneOf(cell);
  return h("tr", { "aria-current": cell.accelerator === now ? "true" : null, onclick: (event) => fits && !event.target.closest("button") && take() },
    h("th", { scope: "row" }, name),
    h("td", { class: "opt" }, given("usable", t("usable memory"), cell.usable_bytes, "bytes", cell.usable_bytes ? gib(cell.usable_bytes) : "", { basis: "measured", text: t("what the runtime gives programs, less what is kept free") })),
    h("td", {}, count),
    h("td", { class: "opt" }, fits ? given("time", t("time"), time, "seconds", said(time, "seconds"), estimated) : ""),
    h("td", {}, given("price", t("price of one accelerator and hour"), each, "USD", each === null ? "" : fixed(each, 2), { source })),
    h("td", {}, fits ? given("cost", t("cost"), cost, "USD", cost === null ? "" : sum(cost).slice(1), { ...estimated, source }) : ""),
    h("td", { class: "opt" }, found ? age(found, list) : h("span", { class: "unknown" }, cell.price === "given" ? t("given") : t("unknown"))));
}

function noneOf(cell) {
  const kind = cell.verdict === "does not fit" ? "no" : "unknown";
  const text = cell.verdict === "does not fit" ? t("over {count}", { count: fixed(cell.accelerators) }) : tr(cell.verdict);
  const told = cell.accelerators === 1 ? t("1 is not enough") : t("{count} are not enough", { count: fixed(cell.accelerators) });
  return h("span", { class: kind, title: cell.reason || kind !== "no" ? tr(cell.reason || cell.verdict) : told }, icon(kind), " ", text);
}

function age(found, list) {
  if (!found.stale) return found.as_of;
  const told = t("older than {days} days", { days: list.stale_after_days });
  return h("span", { class: "stale", title: told }, `\u25b2 ${found.as_of}`, h("span", { class: "vh" }, `, ${told}`));
}
