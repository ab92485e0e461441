/* The row of figures below the verdict: speed, time and money. What nobody knows is said to be unknown. */
import { figure, number, offer, path } from "../card.js";
import { h } from "../dom.js";
import { fixed, human, joules, percent, seconds, short, significant, usd } from "../numbers.js";
import { promptWords } from "../prompts.js";
import { t } from "../words.js";

export function draw(slot, answer) {
  slot.setAttribute("aria-label", t("Facts"));
  if (!answer) return slot.replaceChildren();
  const facts = answer.verb === "serve" ? serving(answer.document) : training(answer.document);
  slot.replaceChildren(h("dl", {}, facts.map(([name, where, text, small]) => entry(name, where, text, small))));
}

function entry(name, where, text, small) {
  const value = text === null ? h("span", { class: "unknown" }, t("unknown")) : number(where, text);
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, small || "\u00a0")));
}

/** The text of a TERM, or null where there is none. */
const text = (term, write) => (term ? write(term.value) : null);
const time = (value) => seconds(value).join(" ");
const range = (band, write = time) => (band ? t("{low} to {high}", { low: write(band[0]), high: write(band[1]) }) : "");
const rate = (value) => (value >= 100 ? fixed(value) : significant(value, 3));

function training({ run, cost, energy, question, warnings, step_time: step }) {
  const n = question.accelerators?.value ?? 1;
  const each = run?.tokens_per_second && share(run.tokens_per_second, n);
  offer("facts", { "tokens per second and GPU": each });
  const whole = run?.seconds;
  const days = (value) => (value < 2 * 86400 ? time(value) : significant(value / 86400, 3));
  const middle = whole
    ? [
        [t("Days"), path("run", "seconds"), text(whole, days), t("for {tokens} tokens", { tokens: short(run.tokens.value) })],
        [t("GPU-hours"), path("run", "accelerator_hours"), text(run.accelerator_hours, (value) => significant(value, 5)), gpus(n)],
      ]
    : [
        [t("time of a step"), "step_time", text(step, time), range(run?.step_time_band)],
        [t("Days"), "", null, t("give the training tokens")],
      ];
  return [
    [t("tokens/s/GPU"), path("facts", "tokens per second and GPU"), text(each, rate), range(run?.step_time_band && rates(run, step, n), rate)],
    [t("MFU"), path("run", "mfu"), text(run?.mfu, percent), run?.hfu ? t("HFU {share}", { share: percent(run.hfu.value) }) : ""],
    ...middle,
    [whole ? t("cost") : t("cost of a step"), "cost", text(cost, usd), priced(cost, whole ? whole.value : step?.value, n, warnings)],
    [whole ? t("energy") : t("energy of a step"), "energy", text(energy, (value) => joules(value).join(" ")), question.pue ? `PUE ${question.pue.value}` : ""],
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

/** Speeds at the two ends of the step's band; the longer step is the slower speed. */
function rates({ tokens_per_second: all, step_time_band: [low, high] }, step, n) {
  const tokens = step && all.value * step.value;
  return tokens ? [tokens / high / n, tokens / low / n] : null;
}

function serving({ serving: of, question, cost, warnings }) {
  return [
    [t("TTFT"), path("serving", "ttft_seconds"), text(of?.ttft_seconds, time), [promptWords(question), range(of?.ttft_band)].filter(Boolean).join(" · ")],
    [t("TPOT"), path("serving", "tpot_seconds"), text(of?.tpot_seconds, time), range(of?.tpot_band)],
    [t("tokens/s/user"), path("serving", "tokens_per_second_per_user"), text(of?.tokens_per_second_per_user, rate), ""],
    [t("tokens/s/GPU"), path("serving", "tokens_per_second_per_gpu"), text(of?.tokens_per_second_per_gpu, rate), t("of answers")],
    [t("concurrency"), path("serving", "concurrency"), text(of?.concurrency, (value) => human(value, "")[0]), t("requests at most")],
    [t("cost / 1M tokens"), path("serving", "cost_per_million_tokens"), text(of?.cost_per_million_tokens, usd), counted(of?.cost_per_million_tokens, priced(cost, of?.tpot_seconds ? 3600 : null, question.accelerators?.value ?? 1, warnings))],
  ];
}
