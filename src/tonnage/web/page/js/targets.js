/* What the user wants at most: TTFT and TPOT of serving, the deadline and the budget of a training run. A target is met where the high end of the
   error band meets it, and tight where it lies inside the band. */
import { Refused } from "./api.js";
import { seconds, usd } from "./numbers.js";
import { state } from "./state.js";
import { t } from "./words.js";

const SPAN = /^([\d.]+)\s*(ms|s|sec|m|min|h|hours?|d|days?|w|weeks?|months?|y|years?)?$/i;
const SECONDS = { ms: 1e-3, s: 1, sec: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800, month: 30 * 86400, y: 365 * 86400 };
const SUM = /^\$?\s*([\d.,]+)\s*([kmbt])?\s*(usd)?$/i;
const SIZES = { k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

/** Seconds of "30d", "500ms"; null of what is no span. `unit`: of a bare number, "" where it has to say one. */
export function spanOf(text, unit = "s") {
  const [, number, name] = SPAN.exec(String(text).trim()) ?? [];
  const value = Number(number);
  const said = (name ?? unit).toLowerCase();
  if (!(value > 0) || !said) return null;
  return value * (SECONDS[said] ?? SECONDS[{ hour: "h", hours: "h", day: "d", days: "d", week: "w", weeks: "w", months: "month", year: "y", years: "y" }[said]]);
}

/** USD of "100k", "$2M"; null of what is no sum. */
export function sumOf(text) {
  const [, number, size] = SUM.exec(String(text).trim()) ?? [];
  const value = Number((number ?? "").replaceAll(",", ""));
  return value > 0 ? value * (SIZES[(size ?? "").toLowerCase()] ?? 1) : null;
}

const span = (value) => seconds(value).join(" ");

/* name of the option -> [its limit in base units, how it is written] */
const LIMITS = {
  serve: { ttft: [spanOf, span], tpot: [spanOf, span] },
  train: { plan_deadline: [(text) => spanOf(text, ""), span], plan_budget: [sumOf, usd] },
};
const kindOfTab = () => (state.tab === "serve" ? "serve" : "train");

/** {limit, text} of a target that was set; null where it was not, or cannot be read. */
export function targetOf(name) {
  const [read, write] = LIMITS[kindOfTab()][name] ?? [];
  const limit = read && name in state.values ? read(state.values[name]) : null;
  return limit ? { limit, text: write(limit) } : null;
}

const WRONG = {
  plan_deadline: (value) => t("Deadline must be a time such as 30d or 12h. Got {value}.", { value }),
  plan_budget: (value) => t("Budget must be a sum in USD such as 100k. Got {value}.", { value }),
};

/** Throws Refused where the page's own targets hold what is none. */
export function check() {
  if (kindOfTab() !== "train") return;
  for (const [name, words] of Object.entries(WRONG)) {
    if (name in state.values && !targetOf(name)) throw new Refused("InvalidInput", words(state.values[name]), 0, name);
  }
}

/** "fits", "tight" or "no" of a figure with its high end. */
export const keeps = (limit, value, high = value) => (Math.max(high, value) <= limit ? "fits" : value <= limit ? "tight" : "no");

/** How much higher the high end of a band lies than its figure, as a factor. */
export const above = (band, value) => (band && value ? Math.max(1, band[1] / value) : 1);

/** [{name, limit, text, value, high, kind}] of the targets that were set and whose figure is known. */
export function judged(document) {
  const { serving, run, cost, step_time: step } = document;
  const figures = kindOfTab() === "serve"
    ? { ttft: [serving?.ttft_seconds?.value, above(serving?.ttft_band, serving?.ttft_seconds?.value)], tpot: [serving?.tpot_seconds?.value, above(serving?.tpot_band, serving?.tpot_seconds?.value)] }
    : { plan_deadline: [run?.seconds?.value, above(run?.step_time_band, step?.value)], plan_budget: [run?.seconds ? cost?.value : undefined, above(run?.step_time_band, step?.value)] };
  return Object.entries(figures).flatMap(([name, [value, factor]]) => {
    const target = targetOf(name);
    return target && typeof value === "number" ? [{ name, ...target, value, high: value * factor, kind: keeps(target.limit, value, value * factor) }] : [];
  });
}

/** What of the run's own targets is missed, in words; "" where none is. The service level is judged by the answer. */
export function missedOf(document) {
  const missed = judged(document).filter((each) => each.kind === "no");
  const late = missed.find((each) => each.name === "plan_deadline");
  const dear = missed.find((each) => each.name === "plan_budget");
  if (late && dear) return t("deadline and budget are missed");
  if (late) return t("the run takes {time}, the deadline is {limit}", { time: span(late.value), limit: late.text });
  return dear ? t("the run costs {cost}, the budget is {limit}", { cost: usd(dear.value), limit: dear.text }) : "";
}

/** How a change keeps the targets: "fits" where all are met at the high end of the error band, "no" where the estimate of one misses, else "tight"; also
    "tight" where a target's figure is not known. */
export function fateOf(move, document) {
  const now = Object.fromEntries(judged(document).map((each) => [each.name, each]));
  const then = {
    ttft: move.ttft_seconds,
    tpot: move.tpot_seconds,
    plan_deadline: now.plan_deadline && typeof move.time_change === "number" ? now.plan_deadline.value * (1 + move.time_change) : undefined,
    plan_budget: now.plan_budget && typeof move.usd_change === "number" ? now.plan_budget.value * (1 + move.usd_change) : undefined,
  };
  const fates = Object.keys(LIMITS[kindOfTab()]).flatMap((name) => {
    const target = targetOf(name);
    if (!target) return [];
    const factor = now[name] ? now[name].high / now[name].value : 1;
    return [typeof then[name] === "number" ? keeps(target.limit, then[name], then[name] * factor) : "tight"];
  });
  if (move.serves === false || fates.includes("no")) return "no";
  return fates.includes("tight") ? "tight" : "fits";
}

/** Whether a change meets all targets at the high end of the error band. */
export const meets = (move, document) => fateOf(move, document) === "fits";
