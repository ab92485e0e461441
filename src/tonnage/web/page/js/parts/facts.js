/* Four tiles below the verdict: speed, time and money, each with its band, its estimate and its target on a strip. What nobody knows says what is
   missing. */
import { html, render } from "../../vendor/preact.js";
import { figure, offer, path } from "../card.js";
import { Figure, Icon } from "../components.js";
import { openSlot } from "../inputs/question.js";
import { compact, compactUsd, joules, percent, seconds, short, significant, usd } from "../numbers.js";
import { promptWords } from "../prompts.js";
import { state } from "../state.js";
import { judged } from "../targets.js";
import { t } from "../words.js";

export function draw(slot, answer) {
  slot.setAttribute("aria-label", t("Facts"));
  if (!answer) return render(null, slot);
  const lacks = answer.document.verdict.fits === false ? t("known once it fits") : t("its time is not known");
  const tiles = answer.verb === "serve" ? serving(answer.document, lacks) : training(answer.document, lacks);
  const targets = new Map(judged(answer.document).map((each) => [each.name, each]));
  render(html`<dl>${tiles.map((tile) => html`<${Tile} key=${tile.name} ...${tile} target=${targets.get(tile.aim)} />`)}</dl>`, slot);
}

const KEPT = { fits: () => t("target met"), tight: () => t("target inside the error band"), no: () => t("target missed") };

/** `shown`: [text, unit], null where the figure is unknown; `value` and `band` in base units, `subs` what stands below, `needs`: the slot whose input is
    missing. */
function Tile({ name, where, shown, value, band, target, subs, needs }) {
  return html`<div class="tile"><dt><span class="title">${name}</span>${target ? html`<span class="aim"><span class=${target.kind}><${Icon} kind=${target.kind} /></span> ≤ ${target.text}<span class="vh">${t("; ")}${KEPT[target.kind]()}</span></span>` : null}</dt>
    <dd class="val">${shown ? html`<${Figure} where=${where}>${shown[0]}<//>${shown[1] ? html` <small>${shown[1]}</small>` : null}` : needs ? html`<button type="button" class="btn" onClick=${() => openSlot(needs[0])}>${needs[1]}</button>` : html`<span class="unknown">${t("unknown")}</span>`}</dd>
    <dd><${Strip} value=${shown ? value : null} band=${band} limit=${target?.limit} /></dd>
    ${subs.filter(Boolean).map((each) => html`<dd class="sub">${each}</dd>`)}</div>`;
}

/** The band in grey, the estimate as a mark, the target dashed; nothing where there is only an estimate. */
function Strip({ value, band, limit }) {
  if (value === null || value === undefined || !(band || limit)) return html`<span class="range none"></span>`;
  const most = Math.max((limit ?? 0) * 1.15, (band?.[1] ?? value) * 1.06);
  const x = (at) => `${Math.min(100, (at / most) * 100).toFixed(1)}%`;
  return html`<span class="range" aria-hidden="true">${band ? html`<i style=${{ left: x(band[0]), right: `${(100 - (band[1] / most) * 100).toFixed(1)}%` }}></i>` : null}${limit ? html`<u style=${{ left: x(limit) }}></u>` : null}<b style=${{ left: x(value) }}></b></span>`;
}

/** "139 to 797 ms": the unit once where both ends have the same. */
function range(band, write = seconds) {
  if (!band) return null;
  const [[low, first], [high, last]] = band.map((edge) => [write(edge)].flat());
  return first === last || first === undefined ? [t("{low} to {high}", { low, high }), last].filter(Boolean).join("\u00a0") : t("{low} to {high}", { low: `${low} ${first}`, high: `${high} ${last}` });
}
const rate = (value) => (value >= 100 ? compact(value) : significant(value, 3));
const days = (value) => (value < 2 * 86400 ? seconds(value) : [significant(value / 86400, 3), t("days")]);
const one = (text) => [text, ""];

/** A second figure of a tile: a number that opens its card, and its words. */
const small = (where, text, words) => html`<${Figure} where=${where}>${text}<//> ${words}`;

function training({ run, cost, energy, question, warnings, step_time: step }, lacks) {
  const n = question.accelerators?.value ?? 1;
  const speed = run?.tokens_per_second;
  const each = speed && share(speed, n);
  offer("facts", { "tokens per second and GPU": each });
  const whole = run?.seconds;
  const band = step && run?.step_time_band; // of the whole run the same, as a part of it
  const wide = (value) => band && value && band.map((edge) => (edge / step.value) * value);
  return [
    { name: t("Step time"), where: "step_time", shown: step && seconds(step.value), value: step?.value, band, subs: [range(band), step ? null : lacks] },
    {
      name: t("Throughput"), where: path("run", "tokens_per_second"), shown: speed && [compact(speed.value), t("tokens/s")], value: speed?.value, band: speeds(speed, step, band),
      subs: [speed ? null : lacks, each && small(path("facts", "tokens per second and GPU"), rate(each.value), t("tokens/s/GPU")), run?.mfu && html`${t("MFU")} <${Figure} where=${path("run", "mfu")}>${percent(run.mfu.value)}<//>${run.hfu ? `${t(", ")}${t("HFU {share}", { share: percent(run.hfu.value) })}` : ""}`],
    },
    whole
      ? { name: t("Days"), where: path("run", "seconds"), shown: days(whole.value), value: whole.value, band: wide(whole.value), aim: "plan_deadline", subs: [range(wide(whole.value), days), html`${t("for {tokens} tokens", { tokens: short(run.tokens.value) })}${run.accelerator_hours ? html`${t(", ")}${small(path("run", "accelerator_hours"), compact(run.accelerator_hours.value), t("GPU-hours"))}` : null}`] }
      : { name: t("Days"), where: "", shown: null, needs: step ? [state.tab === "tune" ? "data" : "tokens", t("Add tokens")] : null, subs: [step ? t("how long it takes depends on them") : lacks] },
    {
      name: whole ? t("cost") : t("cost of a step"), where: "cost", shown: cost && one(compactUsd(cost.value)), value: cost?.value, band: wide(cost?.value), aim: "plan_budget",
      subs: [cost && range(wide(cost.value), compactUsd), priced(cost, whole ? whole.value : step?.value, n, warnings), energy && small("energy", joules(energy.value).join("\u00a0"), question.pue ? t("of energy, PUE {pue}", { pue: question.pue.value }) : t("of energy"))],
    },
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
const counted = (price, how) => (price ? t("input and output tokens, {price}", { price: how }) : how);

/** Tokens a second that each accelerator has of the whole. */
function share(whole, n) {
  const count = figure(t("accelerators"), n, "accelerators");
  return figure(t("tokens a second and accelerator"), whole.value / n, "tokens/s", { combine: "ratio", basis: whole.basis, text: `${whole.name} / ${t("accelerators")}`, children: [whole, count] });
}

/** Speeds at the two ends of the step's band; the longer step is the slower speed. */
const speeds = (speed, step, band) => (speed && step && band ? band.map((edge) => (speed.value * step.value) / edge).reverse() : null);

function serving({ serving: of, question, cost, warnings }, lacks) {
  const { ttft_seconds: ttft, tpot_seconds: tpot, tokens_per_second: speed, tokens_per_second_per_user: user, tokens_per_second_per_gpu: each, concurrency, cost_per_million_tokens: million } = of ?? {};
  return [
    { name: t("TTFT"), where: path("serving", "ttft_seconds"), shown: ttft && seconds(ttft.value), value: ttft?.value, band: of?.ttft_band, aim: "ttft", subs: [ttft ? range(of.ttft_band) : lacks, promptWords(question)] },
    { name: t("TPOT"), where: path("serving", "tpot_seconds"), shown: tpot && seconds(tpot.value), value: tpot?.value, band: of?.tpot_band, aim: "tpot", subs: [tpot ? range(of.tpot_band) : lacks, user && small(path("serving", "tokens_per_second_per_user"), rate(user.value), t("tokens/s/user"))] },
    {
      name: t("Throughput"), where: path("serving", "tokens_per_second"), shown: speed && [compact(speed.value), t("tokens/s")], value: speed?.value,
      subs: [speed ? null : lacks, each && small(path("serving", "tokens_per_second_per_gpu"), rate(each.value), t("tokens/s/GPU")), concurrency && small(path("serving", "concurrency"), compact(concurrency.value), concurrency.value === 1 ? t("request at most") : t("requests at most"))],
    },
    { name: t("cost / 1M tokens"), where: path("serving", "cost_per_million_tokens"), shown: million && one(compactUsd(million.value)), value: million?.value, subs: [counted(million, priced(cost, tpot ? 3600 : null, question.accelerators?.value ?? 1, warnings))] },
  ];
}
