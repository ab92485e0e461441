/* The tray: up to four answers that were pinned, beside the one on the page. It is kept for the visit, also when the page is loaded again. */
import { $, h, icon, keepingFocus, say, scroll, section } from "../dom.js";
import { kindOf, WORDS } from "../marks.js";
import { compact, compactUsd, gib, percent, said, usd } from "../numbers.js";
import { phrase, machineWords } from "../phrases.js";
import { missedOf } from "../targets.js";
import { restore } from "../state.js";
import { t } from "../words.js";

const MOST = 4;
const KEPT = "tonnage.tray";
let pins = load();

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

export function draw(slot, answer, state) {
  if (!answer) return slot.replaceChildren();
  const again = () => keepingFocus(() => draw(slot, answer, state));
  const now = entryOf(answer, state);
  const at = pins.findIndex((each) => sameAs(each, now));
  section(slot, t("Side by side"), pins.length ? null : t("Pin up to four answers to see them side by side."), pins.length ? table(now, at, again) : null);
  $("header", slot).append(pinner(now, at, again));
}

const sameAs = (one, other) => one.tab === other.tab && JSON.stringify(Object.entries(one.values).sort()) === JSON.stringify(Object.entries(other.values).sort());

function entryOf({ document }, { tab, values }) {
  const { question, verdict, serving, run, step_time: step, cost, chosen } = document;
  const kind = kindOf(verdict);
  const figures = {
    needed: verdict.needed_bytes, ttft: serving?.ttft_seconds?.value, tpot: serving?.tpot_seconds?.value, step: serving ? undefined : step?.value,
    rate: serving ? serving.tokens_per_second?.value : run?.tokens_per_second?.value, mfu: run?.mfu?.value, run: run?.seconds?.value,
    million: serving?.cost_per_million_tokens?.value, cost: run?.seconds ? cost?.value : undefined,
  };
  return { tab, values: { ...values }, kind: kind === "fits" && (verdict.missed || missedOf(document)) ? "late" : kind, model: String(question.model?.value ?? ""), on: String(question.on?.value ?? ""), chosen: chosen?.change ?? {}, figures };
}

function pinner(now, at, again) {
  const full = at < 0 && pins.length >= MOST;
  const press = () => {
    pins = at < 0 ? [...pins, now] : pins.filter((_, i) => i !== at);
    keep();
    say(at < 0 ? t("Pinned") : t("No longer pinned"));
    again();
  };
  return h("button", { type: "button", class: "btn", "data-key": "pin", "aria-pressed": String(at >= 0), disabled: full, onclick: press }, full ? t("Four answers are pinned") : t("Pin this answer"));
}

function table(now, at, again) {
  const columns = at < 0 ? [...pins, now] : pins;
  const heads = columns.map((each, i) => h("th", { scope: "col", "aria-current": each === now || i === at ? "true" : null }, h("b", {}, each.model), h("span", {}, machineWords(each.on)), controls(each, i, now, at, again)));
  const rows = [row(t("Verdict"), columns.map(verdict)), ...settings(columns), ...FIGURES.map((figure) => figureRow(figure, columns))];
  return scroll(t("Side by side"), h("table", { class: "tray" }, h("caption", { class: "vh" }, t("Side by side")), h("thead", {}, h("tr", {}, h("td"), heads)), h("tbody", {}, rows.filter(Boolean))));
}

function controls(each, i, now, at, again) {
  if (each === now) return h("small", {}, t("this answer"));
  const name = `${each.model}, ${machineWords(each.on)}`;
  const drop = () => {
    pins = pins.filter((_, j) => j !== i);
    keep();
    again();
  };
  return h("span", { class: "pinned" },
    i === at ? h("small", {}, t("this answer")) : h("button", { type: "button", class: "btn", "data-key": `open pin ${i}`, "aria-label": `${t("Open")}${t(": ")}${name}`, onclick: () => restore(each.tab, each.values) }, t("Open")),
    h("button", { type: "button", class: "btn", "data-key": `drop pin ${i}`, "aria-label": `${t("Remove")}${t(": ")}${name}`, onclick: drop }, t("Remove")));
}

const SHAPES = { late: "tight" };
const LATE = () => t("Fits, target missed");
const verdict = ({ kind }) => [h("span", { class: SHAPES[kind] ?? kind }, icon(SHAPES[kind] ?? kind)), " ", kind === "late" ? LATE() : WORDS[kind]()];

const row = (label, cells, marks = []) => h("tr", {}, h("th", { scope: "row" }, label), cells.map((cell, i) => h("td", { class: marks[i] || null }, cell)));

/** Settings that are not the same in all columns, and what was chosen. */
function settings(columns) {
  const all = columns.map(({ values, chosen }) => ({ ...values, ...chosen }));
  const names = [...new Set(all.flatMap(Object.keys))].filter((name) => !["model", "on", "as_is"].includes(name) && !name.startsWith("plan_") && new Set(all.map((each) => String(each[name] ?? ""))).size > 1);
  if (!names.length) return [];
  return [row(t("Settings"), all.map((each) => h("span", {}, names.filter((name) => name in each).map((name) => h("span", { class: "setting" }, phrase(name, each[name]))))), all.map(() => "l"))];
}

function figureRow([name, label, write, less], columns) {
  const values = columns.map(({ figures }) => figures[name]);
  const known = values.filter((value) => typeof value === "number");
  if (!known.length) return null;
  const best = less ? Math.min(...known) : Math.max(...known);
  const differ = known.length > 1 && new Set(known.map(write)).size > 1;
  const cells = values.map((value) => (typeof value !== "number" ? h("span", { class: "unknown" }, t("unknown")) : differ && value === best ? [h("span", { "aria-hidden": "true" }, "▲ "), write(value), h("span", { class: "vh" }, t(", best"))] : write(value)));
  return row(label(), cells, values.map((value) => (differ ? (value === best ? "differs best-of" : "differs") : "")));
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
