/* The row of figures below the verdict: speed, time and money, each with its band and its target where one was set. What nobody knows is said to be
   unknown. */
import { figure, number, offer, path } from "../card.js";
import { h, icon } from "../dom.js";
import { compact, compactUsd, joules, percent, seconds, short, significant, usd } from "../numbers.js";
import { promptWords } from "../prompts.js";
import { judged } from "../targets.js";
import { t } from "../words.js";

export function draw(slot, answer) {
  slot.setAttribute("aria-label", t("Facts"));
  if (!answer) return slot.replaceChildren();
  const facts = answer.verb === "serve" ? serving(answer.document) : training(answer.document);
  const targets = new Map(judged(answer.document).map((each) => [each.name, each]));
  slot.replaceChildren(h("dl", {}, facts.map(([name, where, text, small, band, target]) => entry(name, where, text, small, band, targets.get(target)))));
}

function entry(name, where, text, small, band, target) {
  const value = text === null ? h("span", { class: "unknown" }, t("unknown")) : number(where, text);
  return h("div", {}, h("dt", {}, name, target ? mark(target) : null), h("dd", {}, value, band ? h("small", { class: "range" }, band) : null, h("small", {}, small || (band ? null : "\u00a0"))));
}

const KEPT = { fits: () => t("target met"), tight: () => t("target inside the error band"), no: () => t("target missed") };

/** Whether the target is met: at the high end of the band, by the estimate alone, or not. */
const mark = ({ kind, text }) => h("span", { class: "aim" }, h("span", { class: kind }, icon(kind)), ` ≤ ${text}`, h("span", { class: "vh" }, t("; "), KEPT[kind]()));

/** The text of a TERM, or null where there is none. */
const text = (term, write) => (term ? write(term.value) : null);
const time = (value) => seconds(value).join("\u00a0");
/** "139 to 797 ms": the unit once where both ends have the same. */
function range(band, write = seconds) {
  if (!band) return "";
  const [[low, first], [high, last]] = band.map((edge) => [write(edge)].flat());
  return first === last || first === undefined ? [t("{low} to {high}", { low, high }), last].filter(Boolean).join("\u00a0") : t("{low} to {high}", { low: `${low} ${first}`, high: `${high} ${last}` });
}
const rate = (value) => (value >= 100 ? compact(value) : significant(value, 3));
const rates = (value) => [rate(value), t("tokens/s")];
const days = (value) => (value < 2 * 86400 ? seconds(value) : [significant(value / 86400, 3), t("days")]);

function training({ run, cost, energy, question, warnings, step_time: step }) {
  const n = question.accelerators?.value ?? 1;
  const each = run?.tokens_per_second && share(run.tokens_per_second, n);
  offer("facts", { "tokens per second and GPU": each });
  const whole = run?.seconds;
  const band = step && run?.step_time_band; // of the whole run the same, as a part of it
  const wide = (value) => band && value && band.map((edge) => (edge / step.value) * value);
  const middle = whole
    ? [
        [t("Days"), path("run", "seconds"), text(whole, (value) => (value < 2 * 86400 ? time(value) : days(value)[0])), t("for {tokens} tokens", { tokens: short(run.tokens.value) }), range(wide(whole.value), days), "plan_deadline"],
        [t("GPU-hours"), path("run", "accelerator_hours"), text(run.accelerator_hours, compact), gpus(n), range(wide(run.accelerator_hours?.value), compact)],
      ]
    : [
        [t("time of a step"), "step_time", text(step, time), "", range(band)],
        [t("Days"), "", null, t("give the training tokens")],
      ];
  return [
    [t("tokens/s/GPU"), path("facts", "tokens per second and GPU"), text(each, rate), "", range(speeds(run, step, n), rates)],
    [t("MFU"), path("run", "mfu"), text(run?.mfu, percent), run?.hfu ? t("HFU {share}", { share: percent(run.hfu.value) }) : ""],
    ...middle,
    [whole ? t("cost") : t("cost of a step"), "cost", text(cost, compactUsd), priced(cost, whole ? whole.value : step?.value, n, warnings), range(wide(cost?.value), compactUsd), "plan_budget"],
    [whole ? t("energy") : t("energy of a step"), "energy", text(energy, (value) => joules(value).join("\u00a0")), question.pue ? `PUE ${question.pue.value}` : ""],
  ];
}

/** What a GPU-hour costs by that; or what a cost lacks: a time first, which any price has to be multiplied by. `taken`: seconds that were paid. */
function priced(cost, taken, n, warnings) {
  if (!taken) return t("its time is not known");
  if (!cost) return warnings.some((text) => EXCHANGED.test(text)) ? t("its price needs a rate of exchange") : t("no price is known");
  return t("at {usd} a GPU-hour", { usd: usd((cost.value / taken / n) * 3600) });
}

const EXCHANGED = /^prices in \w+ need a rate of exchange/;

/** Which tokens a price is of: the speeds beside it are of answers alone. */
const counted = (price, how) => (price ? t("prompts and answers, {price}", { price: how }) : how);

const gpus = (n) => (n === 1 ? t("{n} GPU", { n }) : t("{n} GPUs", { n }));

/** Tokens a second that each accelerator has of the whole. */
function share(whole, n) {
  const count = figure(t("accelerators"), n, "accelerators");
  return figure(t("tokens a second and accelerator"), whole.value / n, "tokens/s", { combine: "ratio", basis: whole.basis, text: `${whole.name} / ${t("accelerators")}`, children: [whole, count] });
}

/** Speeds of a GPU at the two ends of the step's band; the longer step is the slower speed. */
function speeds(run, step, n) {
  const tokens = step && run?.step_time_band && run.tokens_per_second && run.tokens_per_second.value * step.value;
  return tokens ? run.step_time_band.map((edge) => tokens / edge / n).reverse() : null;
}

function serving({ serving: of, question, cost, warnings }) {
  return [
    [t("TTFT"), path("serving", "ttft_seconds"), text(of?.ttft_seconds, time), promptWords(question), range(of?.ttft_band), "ttft"],
    [t("TPOT"), path("serving", "tpot_seconds"), text(of?.tpot_seconds, time), "", range(of?.tpot_band), "tpot"],
    [t("tokens/s/user"), path("serving", "tokens_per_second_per_user"), text(of?.tokens_per_second_per_user, rate), ""],
    [t("tokens/s/GPU"), path("serving", "tokens_per_second_per_gpu"), text(of?.tokens_per_second_per_gpu, rate), t("of answers")],
    [t("concurrency"), path("serving", "concurrency"), text(of?.concurrency, compact), t("requests at most")],
    [t("cost / 1M tokens"), path("serving", "cost_per_million_tokens"), text(of?.cost_per_million_tokens, compactUsd), counted(of?.cost_per_million_tokens, priced(cost, of?.tpot_seconds ? 3600 : null, question.accelerators?.value ?? 1, warnings))],
  ];
}
