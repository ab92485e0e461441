/* Which of the plans that were found comes first: those whose figure lies inside the error band of the best are tied with it, and of them the one
   with the fewest settings is first. And whether the targets are met at the high end of that band. */
import { above, keeps, spanOf, sumOf } from "../targets.js";

/* Of each goal the figure that orders the plans, and whether less of it is better. */
const KEYS = { fastest: "step_seconds", cheapest: "usd_per_million_tokens", fewest: "step_seconds", cost: "usd_per_hour", accelerators: "tpot_seconds", tpot: "tpot_seconds", ttft: "ttft_seconds", goodput: "requests_per_second", "token-cost": "usd_per_million_tokens" };
const COUNTED = ["fewest", "accelerators", "cost"]; // goals whose figure has no error: how many are taken, and what they cost an hour
const PLAIN = new Set([null, undefined, 0, 1, "none", ""]);
/* Options of a training plan that are no setting of it: what it is trained on, and what follows from the others. */
const GIVEN = new Set(["sequence_length", "global_batch_size", "num_microbatches", "micro_batch_size", "data_parallel_size", "runtime", "zero_stage", "context"]);
const SERVED = ["tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "attention_data_parallel_size", "replicas", "prefill_replicas", "max_num_batched_tokens", "max_num_seqs"];

/** How many settings a plan needs beside the defaults of its runtime or engine; other numerics than the checkpoint's count as one. */
export function settingsOf(plan) {
  if (plan.options) return Object.entries(plan.options).filter(([name, value]) => !GIVEN.has(name) && !PLAIN.has(value)).length;
  return SERVED.filter((name) => !PLAIN.has(plan[name])).length + (plan.changes_weights ? 1 : 0);
}

/** [low, high] of the error band of the best plan's figure, as factors of it; null where the answer has no band. */
export function errorOf(document, goal = document.goal) {
  const { step_time: step, run, serving } = document.best ?? {};
  const of = (band, value) => (band && value ? band.map((edge) => edge / value) : null);
  if (COUNTED.includes(goal) && goal !== "fewest") return null;
  if (serving) return goal === "ttft" ? of(serving.ttft_band, serving.ttft_seconds?.value) : of(serving.tpot_band, serving.tpot_seconds?.value);
  return of(run?.step_time_band, step?.value);
}

/** Whether a plan is no worse than the best by more than the error. */
function isTied(plan, best, goal, error) {
  if (COUNTED.includes(goal)) {
    if (plan.accelerators !== best.accelerators || (goal === "cost" && plan.usd_per_hour !== best.usd_per_hour)) return false;
    if (goal !== "fewest") return true;
  }
  const [one, other] = [best[KEYS[goal]], plan[KEYS[goal]]];
  if (!one || !other) return false;
  const worse = goal === "goodput" ? one / other : other / one;
  return worse <= (error ? error[1] : 1);
}

/** The plans in the order in which they are shown: [{plan, place, tied}]. `place`: of the search, from 0. */
export function ordered(document) {
  const [best, ...rest] = document.plans.map((plan, place) => ({ plan, place, tied: false }));
  if (!best) return [];
  const error = errorOf(document);
  const tied = rest.filter(({ plan }) => isTied(plan, best.plan, document.goal, error)).map((each) => ({ ...each, tied: true }));
  const level = [best, ...tied].sort((one, other) => settingsOf(one.plan) - settingsOf(other.plan) || one.place - other.place);
  return [...level.map((each, at) => ({ ...each, tied: at > 0 })), ...rest.filter((each) => !tied.some(({ place }) => place === each.place))];
}

/** The targets of a question in base units: [option, limit, the figure that keeps it]. */
function limitsOf(asked) {
  return [
    ["deadline", spanOf(asked.deadline ?? "", ""), "run_seconds"], ["budget", asked.serve ? null : sumOf(asked.budget ?? ""), "cost"],
    ["ttft", spanOf(asked.ttft ?? ""), "ttft_seconds"], ["tpot", spanOf(asked.tpot ?? ""), "tpot_seconds"],
  ].filter(([, limit]) => limit);
}

/** "fits" where a plan meets every target at the high end of the error band of the best one, "tight" where by the estimate alone, "no" where not
    even so; null where there is no target. */
export function fateOfPlan(plan, asked, document) {
  const { step_time: step, run, serving } = document.best ?? {};
  const factors = { run_seconds: above(run?.step_time_band, step?.value), cost: above(run?.step_time_band, step?.value), ttft_seconds: above(serving?.ttft_band, serving?.ttft_seconds?.value), tpot_seconds: above(serving?.tpot_band, serving?.tpot_seconds?.value) };
  const fates = limitsOf(asked).filter(([, , name]) => typeof plan[name] === "number").map(([, limit, name]) => keeps(limit, plan[name], plan[name] * factors[name]));
  if (!fates.length) return null;
  return ["no", "tight"].find((each) => fates.includes(each)) ?? "fits";
}
