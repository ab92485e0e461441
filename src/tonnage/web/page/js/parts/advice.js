/* The decision: changes that were estimated again as one table, the recommended first, each with a button that makes it; the nearest miss where none
   fits. What does not stand beside the verdict stands among the options. */
import { figure, number, offer, path } from "../card.js";
import { h, icon, section } from "../dom.js";
import { WORDS } from "../marks.js";
import { apply, named, recommended } from "../moves.js";
import { change, compact, gib, said, usd } from "../numbers.js";
import { fateOf } from "../targets.js";
import { t, tr } from "../words.js";
import { turnTo } from "./views.js";

const FIRST = 3; // moves that stand beside the verdict

const CHANGES = {
  nothing: () => t("workload and numerics stay"),
  machine: () => t("changes the machine"),
  workload: () => t("changes the workload"),
  numerics: () => t("changes the numerics"),
  method: () => t("changes the method"),
};

export function draw(slot, answer) {
  if (!answer) return slot.replaceChildren();
  slot.classList.toggle("old", !answer.settled);
  slot.setAttribute("aria-busy", String(!answer.settled));
  const title = t("Suggestions (re-estimated)");
  if (!answer.settled) return slot.children.length ? undefined : section(slot, title, null, h("p", { class: "note waiting" }, t("Working it out…")));
  const { document } = answer;
  offer("advice", document.advice.map((move) => terms(move, document)));
  const found = answer.unadvised ? [h("p", { class: "note" }, tr(answer.unadvised))] : [decision(answer), miss(document)];
  section(slot, title, null, ...found);
}

/** The changes that have no room beside the verdict. */
export function drawOthers(slot, answer) {
  const others = answer?.settled && !answer.unadvised ? ordered(answer.document).slice(FIRST) : [];
  if (!others.length) return slot.replaceChildren();
  section(slot, t("Other changes"), t("Estimated again as a whole, as those beside the verdict"), tableOf(others, answer));
}

/** All changes, the recommended first. */
function ordered(document) {
  const best = recommended(document);
  return [...(best ? [best] : []), ...document.advice.filter((move) => move !== best)];
}

function tableOf(moves, { document, verb }) {
  const { advice } = document;
  const best = recommended(document);
  const heads = [[t("Change"), "l"], [t("GiB per GPU"), ""], [verb === "serve" ? t("TPOT, tokens/s") : t("Speed"), ""], [t("USD per 1M tokens"), ""]];
  return h("table", { class: "decision" }, h("caption", { class: "vh" }, t("Suggestions (re-estimated)")),
    h("thead", {}, h("tr", {}, heads.map(([words, kind]) => h("th", { scope: "col", class: kind || null }, words)), h("th", { scope: "col" }, h("span", { class: "vh" }, t("Apply"))))),
    h("tbody", {}, now(document, verb), moves.map((move) => row(move, advice.indexOf(move), document, verb, move === best))));
}

function decision(answer) {
  const { document } = answer;
  if (!document.advice.length) return document.nearest_miss ? null : h("p", { class: "note" }, t("None that was tried is better."));
  const order = ordered(document);
  const more = order.length - FIRST;
  return [
    tableOf(order.slice(0, FIRST), answer),
    recommended(document) ? null : h("p", { class: "note" }, t("No change recommended: none meets every target and leaves workload and numerics as they are.")),
    more > 0 ? h("button", { type: "button", class: "btn plain more", "data-key": "more moves", id: "more-moves", onclick: () => turnTo("options") }, t("{n} more among the options", { n: more })) : null,
  ];
}

/** What is asked about now, as the first row. */
function now({ verdict, serving, run, cost, step_time: step }, verb) {
  const million = verb === "serve" ? serving?.cost_per_million_tokens?.value : cost && (run?.seconds ? cost.value / run.tokens.value * 1e6 : run?.tokens_per_second && step ? cost.value / (run.tokens_per_second.value * step.value) * 1e6 : null);
  const speed = verb === "serve" ? serving?.tpot_seconds && said(serving.tpot_seconds.value, "seconds") : run?.tokens_per_second && rate(run.tokens_per_second.value);
  return h("tr", { class: "now" }, h("th", { scope: "row" }, t("Now")), cell(t("GiB per GPU"), gib(verdict.needed_bytes)), cell(t("Speed"), speed || DASH), cell(t("USD per 1M tokens"), known(million) ? usd(million) : DASH), h("td"));
}

const DASH = "–";
const rate = (value) => `${compact(value)} ${t("tokens/s")}`;

/** A cell that says its column's name where the table stands as cards, on a phone. */
const cell = (head, ...body) => h("td", { "data-head": head }, h("span", {}, body));

function row(move, i, document, verb, best) {
  const kind = move.fits ? fateOf(move, document) : "no";
  const words = { fits: WORDS.fits, tight: () => t("may miss the targets"), no: () => (move.fits ? t("Fits, misses the targets") : WORDS.no()) };
  const notes = [h("span", { class: kind }, icon(kind), " ", words[kind]()), CHANGES[move.changes](), market(move)].filter(Boolean);
  return h(
    "tr",
    { class: best ? "best" : null, "data-move": move.text },
    h("th", { scope: "row" }, best ? h("b", { class: "pickme" }, t("Recommended")) : null, h("span", { class: "moves" }, named(move, document)), h("small", {}, notes.flatMap((each, at) => (at ? [" · ", each] : [each])))),
    cell(t("GiB per GPU"), gib(document.verdict.needed_bytes), " → ", number(path("advice", i, "freed"), gib(move.needed_bytes))),
    cell(t("Speed"), speed(move, i, document, verb)),
    cell(t("USD per 1M tokens"), money(move, i)),
    h("td", {}, apply(move, best ? "go" : "")),
  );
}

const known = (value) => value !== null && value !== undefined;

function speed(move, i, { run, serving }, verb) {
  const parts = [];
  const then = verb === "serve" ? move.tokens_per_second : known(move.time_change) && run?.tokens_per_second ? run.tokens_per_second.value / (1 + move.time_change) : null;
  if (known(move.tpot_seconds)) parts.push(number(path("advice", i, "tpot"), said(move.tpot_seconds, "seconds")));
  else if (!known(then) && known(move.step_seconds)) parts.push(number(path("advice", i, "step"), t("{time} a step", { time: said(move.step_seconds, "seconds") })));
  if (known(then) && !known(move.tpot_seconds)) parts.push(rate(then));
  const small = [known(then) && known(move.tpot_seconds) ? rate(then) : null, known(move.time_change) ? number(path("advice", i, "time"), change(1 / (1 + move.time_change) - 1)) : null].filter(Boolean);
  if (!parts.length && !small.length) return h("span", { class: "unknown" }, t("unknown"));
  return [parts, small.length ? h("small", {}, small.flatMap((each, at) => (at ? [", ", each] : [each]))) : null];
}

function money(move, i) {
  if (!known(move.usd_per_million_tokens)) return h("span", { class: "unknown" }, t("unknown"));
  return [number(path("advice", i, "million"), usd(move.usd_per_million_tokens)), known(move.usd_change) ? h("small", {}, number(path("advice", i, "money"), change(move.usd_change))) : null];
}

/** Whose price it has, where that is not the provider of the machine that was asked about. */
const market = (move) => (move.provider ? t("price of {provider}", { provider: move.provider }) : null);

/** The figures of a move, which the answer states without TERMs. */
function terms(move, document) {
  const before = document.memory;
  const again = { text: t("estimated again with the change"), source: move.text };
  const then = figure(t("needed then"), move.needed_bytes, "bytes", { basis: before.basis, ...again });
  const made = { freed: figure(move.freed_bytes >= 0 ? t("freed on the fullest GPU") : t("costs on the fullest GPU"), Math.abs(move.freed_bytes), "bytes", { combine: "difference", basis: before.basis, children: move.freed_bytes >= 0 ? [before, then] : [then, before], source: move.text }) };
  const million = known(move.usd_per_million_tokens) ? figure(t("a million tokens then"), move.usd_per_million_tokens, "USD", again) : null;
  if (million) made.million = million;
  if (known(move.tpot_seconds)) made.tpot = figure(t("TPOT then"), move.tpot_seconds, "seconds", again);
  if (known(move.step_seconds)) made.step = figure(t("time of a step then"), move.step_seconds, "seconds", again);
  if (known(move.time_change)) {
    made.time = figure(t("change of the cluster's speed"), 1 / (1 + move.time_change) - 1, "", { text: t("tokens a second then / now - 1, of all accelerators"), source: move.text });
  }
  if (known(move.usd_change)) {
    made.money = figure(t("change of the money for a token"), move.usd_change, "", { text: t("money then / money now - 1, both estimated"), source: move.text, children: million ? [million] : [] });
  }
  return made;
}

function miss(document) {
  const near = document.nearest_miss;
  if (!near) return null;
  return h(
    "div",
    { class: "miss" },
    h("p", {}, icon("no"), " ", t("No change that was tried makes it fit. The nearest still misses {b} GiB:", { b: gib(near.missing_bytes) })),
    h("p", { class: "moves" }, named(near, document), " ", apply(near)),
    near.smallest_machine ? h("p", {}, t("It fits on {machine}.", { machine: near.smallest_machine }), " ", apply({ change: { on: near.smallest_machine }, text: `--on ${near.smallest_machine}` })) : null,
  );
}
