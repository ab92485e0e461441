/* Answers that were pinned, up to four: a bar at the foot of the page, and the tab Compare, where they stand beside the last answer. They are kept for the
   visit, also when the page is loaded again. */
import { html, render } from "../../vendor/preact.js";
import { Icon, Sign } from "../components.js";
import { say } from "../dom.js";
import { kindOf, WORDS } from "../marks.js";
import { compact, compactUsd, gib, percent, said, usd } from "../numbers.js";
import { machineWords, phrase } from "../phrases.js";
import { restore, state, turn, VERB } from "../state.js";
import { missedOf } from "../targets.js";
import { t } from "../words.js";

const MOST = 4;
const KEPT = "tonnage.tray";
let pins = load();
let changed = () => {};

/** `listener` is called when something was pinned or let go. */
export const onPins = (listener) => (changed = listener);
export const pinned = () => pins.length;

/* [name, label, how it is written, whether less is better] */
const FIGURES = [
  ["needed", () => t("GiB per GPU"), (value) => gib(value), true],
  ["ttft", () => t("TTFT"), (value) => said(value, "seconds"), true],
  ["tpot", () => t("TPOT"), (value) => said(value, "seconds"), true],
  ["step", () => t("time of a step"), (value) => said(value, "seconds"), true],
  ["rate", () => t("tokens/s"), compact, false],
  ["mfu", () => t("MFU"), (value) => percent(value), false],
  ["run", () => t("Run"), (value) => said(value, "seconds"), true],
  ["million", () => t("USD per 1M tokens"), usd, true],
  ["cost", () => t("cost"), compactUsd, true],
];

const key = ({ tab, values }) => JSON.stringify([tab, Object.entries(values).sort()]);
const placeOf = (entry) => (entry ? pins.findIndex((each) => key(each) === key(entry)) : -1);

/** What is kept of an answer: {tab, values} of its question, and its figures. */
function entryOf({ document, asked: { tab, values } }) {
  const { question, verdict, serving, run, step_time: step, cost, chosen } = document;
  const kind = kindOf(verdict);
  const figures = {
    needed: verdict.needed_bytes, ttft: serving?.ttft_seconds?.value, tpot: serving?.tpot_seconds?.value, step: serving ? undefined : step?.value,
    rate: serving ? serving.tokens_per_second?.value : run?.tokens_per_second?.value, mfu: run?.mfu?.value, run: run?.seconds?.value,
    million: serving?.cost_per_million_tokens?.value, cost: run?.seconds ? cost?.value : undefined,
  };
  return { tab, values: { ...values }, kind: kind === "fits" && (verdict.missed || missedOf(document)) ? "late" : kind, model: String(question.model?.value ?? ""), on: String(question.on?.value ?? ""), chosen: chosen?.change ?? {}, figures };
}

function put(list, words) {
  pins = list;
  keep();
  say(words);
  changed();
}

const drop = (at) => put(pins.filter((_, i) => i !== at), t("No longer pinned"));

export function PinButton({ answer }) {
  const now = entryOf(answer);
  const at = placeOf(now);
  const full = at < 0 && pins.length >= MOST;
  const press = () => (at < 0 ? put([...pins, now], t("Pinned")) : drop(at));
  return html`<button type="button" class="btn plain" id="pin" aria-pressed=${String(at >= 0)} disabled=${full} onClick=${press}><${Sign} kind="pin" />${full ? t("Four answers are pinned") : t("Pin to compare")}</button>`;
}

/* ---- the bar at the foot ---- */

export function drawBar(slot) {
  slot.hidden = !pins.length || !VERB[state.tab];
  slot.setAttribute("aria-label", t("Pinned answers"));
  render(slot.hidden ? null : html`<b>${t("Compare")}</b>${pins.map((each, i) => html`<span class="pin" key=${key(each)}><${Icon} kind=${shapeOf(each)} />${nameOf(each)}<button type="button" class="btn plain x" aria-label=${`${t("Remove")}${t(": ")}${nameOf(each)}`} onClick=${() => drop(i)}><${Sign} kind="close" /></button></span>`)}
    ${pins.length < MOST ? html`<span class="pin empty">${pins.length === MOST - 1 ? t("pin one more") : t("pin up to {n} more", { n: MOST - pins.length })}</span>` : null}
    <button type="button" class="btn" id="side-by-side" onClick=${() => turn("compare")}>${t("Side by side")}</button>`, slot);
}

const nameOf = ({ model, on }) => `${model}, ${machineWords(on)}`;

/* ---- the tab Compare ---- */

export function draw(slot, answer, _, latest) {
  slot.setAttribute("aria-labelledby", "h-tray");
  render(html`<h1 id="h-tray">${t("Side by side")}</h1><${Compare} latest=${latest && entryOf(latest)} />`, slot);
}

function Compare({ latest }) {
  if (!pins.length) return html`<p>${t("Pin up to four answers to see them side by side.")} ${t("The button Pin to compare stands above the views of each answer.")}</p>`;
  const here = placeOf(latest);
  const columns = latest && here < 0 ? [...pins, latest] : pins;
  const rows = [settings(columns), ...FIGURES.map((figure) => figureRow(figure, columns))];
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("Side by side")}><table class="tray"><caption class="vh">${t("Side by side")}</caption>
    <thead><tr><td></td>${columns.map((each, i) => html`<${Head} key=${key(each)} each=${each} at=${i < pins.length ? i : -1} isNow=${each === latest || i === here} />`)}</tr></thead>
    <tbody><${Row} label=${t("Verdict")} cells=${columns.map((each) => html`<span class=${shapeOf(each)}><${Icon} kind=${shapeOf(each)} /></span> ${each.kind === "late" ? t("Fits, target missed") : WORDS[each.kind]()}`)} />${rows}</tbody></table></div>`;
}

function Head({ each, at, isNow }) {
  const open = () => restore(each.tab, each.values);
  return html`<th scope="col" aria-current=${isNow ? "true" : null}><b>${each.model}</b><span>${machineWords(each.on)}</span>${isNow ? html`<small>${t("this answer")}</small>` : null}
    <span class="pinned"><button type="button" class="btn" aria-label=${`${t("Open")}${t(": ")}${nameOf(each)}`} onClick=${open}>${t("Open")}</button>${at < 0 ? null : html`<button type="button" class="btn" aria-label=${`${t("Remove")}${t(": ")}${nameOf(each)}`} onClick=${() => drop(at)}>${t("Remove")}</button>`}</span></th>`;
}

const shapeOf = ({ kind }) => ({ late: "tight" })[kind] ?? kind;

function Row({ label, cells, marks = [] }) {
  return html`<tr class=${marks.length && !marks.some(Boolean) ? "same" : null}><th scope="row">${label}</th>${cells.map((cell, i) => html`<td class=${marks[i] || null}>${cell}</td>`)}</tr>`;
}

/** Settings that are not the same in all columns, and what was chosen. */
function settings(columns) {
  const all = columns.map(({ values, chosen }) => ({ ...values, ...chosen }));
  const names = [...new Set(all.flatMap(Object.keys))].filter((name) => !["model", "on", "as_is"].includes(name) && !name.startsWith("plan_") && new Set(all.map((each) => String(each[name] ?? ""))).size > 1);
  if (!names.length) return null;
  return html`<${Row} label=${t("Settings")} cells=${all.map((each) => names.filter((name) => name in each).map((name) => html`<span class="setting">${phrase(name, each[name])}</span>`))} marks=${all.map(() => "l")} />`;
}

function figureRow([name, label, write, less], columns) {
  const values = columns.map(({ figures }) => figures[name]);
  const known = values.filter((value) => typeof value === "number");
  if (!known.length) return null;
  const best = less ? Math.min(...known) : Math.max(...known);
  const differ = known.length > 1 && new Set(known.map(write)).size > 1;
  const cell = (value) => {
    if (typeof value !== "number") return html`<span class="unknown">${t("unknown")}</span>`;
    return differ && value === best ? html`<span aria-hidden="true">▲ </span>${write(value)}<span class="vh">${t(", best")}</span>` : write(value);
  };
  return html`<${Row} label=${label()} cells=${values.map(cell)} marks=${values.map((value) => (differ ? (value === best ? "differs best-of" : "differs") : ""))} />`;
}

/* ---- what is kept for the visit ---- */

/** A browser may forbid storage: then the tray lasts as long as the page. */
function keep() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(pins));
  } catch {
    // nothing is kept
  }
}

function load() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => each?.figures && each.values).slice(0, MOST) : [];
  } catch {
    return [];
  }
}
