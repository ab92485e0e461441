/* Whether it fits, in one sentence; then on which rank, at which load, how sure that is and of which runtime; then what was chosen so that it fits. */
import { number, path } from "../card.js";
import { fill, h, icon } from "../dom.js";
import { basis, kindOf, WORDS } from "../marks.js";
import { inLabels } from "../inputs/labels.js";
import { fixed, gib } from "../numbers.js";
import { phrases } from "../phrases.js";
import { fullestOf, groupName, groupsOf } from "../ranks.js";
import { missedOf } from "../targets.js";
import { t, tr } from "../words.js";
import { chosen } from "./chosen.js";
import { shorter } from "./context.js";

const SENTENCES = {
  fits: () => t("{verdict} {need} of {usable} GiB usable per GPU, {spare} GiB to spare"),
  tight: () => t("{verdict} {need} of {usable} GiB usable per GPU; the error band reaches {high} GiB"),
  no: () => t("{verdict} {need} GiB needed, {usable} GiB usable per GPU, {over} GiB over"),
};

export function draw(slot, answer, state) {
  slot.setAttribute("aria-labelledby", "v-line");
  if (state.waiting) return slot.replaceChildren(...waiting(state));
  if (!answer) return slot.replaceChildren(...(state.error ? refused(state) : nothing()));
  const { document } = answer;
  slot.replaceChildren(
    ...[state.error && banner(state), headline(document), shorter(document), basics(document, answer.verb), chosen(document), outdated(document)].filter(Boolean),
  );
}

function line(kind, ...words) {
  return h("h1", { class: "v-line", id: "v-line" }, kind ? icon(kind) : null, h("span", {}, words));
}

function nothing() {
  return [line("unknown", t("Name a model to begin")), h("p", { class: "v-sub" }, t("Or start from one of these"))];
}

function refused({ error, field }) {
  if (error.kind === "MissingDatum") return [line("unknown", h("strong", {}, WORDS.unknown())), said(error)];
  return [line("no", field ? t("One input needs attention: {field}", { field }) : t("This cannot be answered")), said(error)];
}

const said = (error) => h("p", { class: "v-sub" }, inLabels(tr(error.message)));

function waiting(state) {
  return [
    line("unknown", state.waiting),
    h("div", { class: "progress", role: "progressbar", "aria-label": state.waiting }, h("i")),
    h("p", { class: "v-sub" }, h("button", { type: "button", class: "btn", id: "cancel", onclick: state.cancel }, t("Cancel"))),
  ];
}

function banner({ error, field }) {
  const words = field ? t("Showing the last valid answer. One input needs attention: {field}", { field }) : t("Showing the last valid answer.");
  return h("div", { class: "v-next bad" }, icon("no"), h("div", {}, h("b", {}, words), h("p", {}, inLabels(tr(error.message)))));
}

/** The verdict in words: with what was chosen, or with what is missed. */
function wordOf(kind, document) {
  const { verdict, chosen: made } = document;
  const missed = verdict.missed ? tr(verdict.missed) : kind === "fits" ? missedOf(document) : "";
  if (kind === "fits" && missed) return [t("Fits, but {missed}", { missed }), "tight"];
  if (kind === "no" && missed) return [t("Does not fit: {missed}", { missed }), kind];
  if (kind === "fits" && made) return [t("Fits with {chosen}", { chosen: phrases(made.change) }), kind];
  if (kind === "tight" && made) return [t("Tight with {chosen}", { chosen: phrases(made.change) }), kind];
  return [WORDS[kind](), kind];
}

function headline(document) {
  const kind = kindOf(document.verdict);
  const { needed_bytes: need, usable_bytes: usable, band } = document.verdict;
  const [words, shape] = wordOf(kind, document);
  const word = h("strong", {}, words, t(": ").trimEnd());
  // What the hosts cannot hold may well fit on the GPUs.
  const sentence = kind === "no" && need <= usable ? SENTENCES.fits : SENTENCES[kind];
  if (!sentence || need === null || usable === null) {
    return line(kind, word, need === null ? null : [" ", fill(t("{need} GiB needed per GPU"), { need: number("memory", gib(need)) })]);
  }
  const figures = {
    verdict: word,
    need: number("memory", gib(need)),
    usable: number(path("page", "usable"), gib(usable)),
    spare: number(path("page", "spare"), gib(usable - need)),
    over: number(path("page", "over"), gib(need - usable)),
    high: band && number(path("page", "high"), gib(band[1])),
  };
  return line(shape, fill(sentence(), figures));
}

function basics(document, verb) {
  const { question, verdict } = document;
  const groups = document.ranks && groupsOf(document); // a summary has no ranks
  const runtime = question.runtime_version ?? question.engine_version ?? question.runtime ?? question.engine;
  const { band } = verdict;
  const bandLine = band
    ? fill(t("Error band {low} to {high} GiB"), { low: number(path("page", "low"), gib(band[0])), high: number(path("page", "high"), gib(band[1])) })
    : t("No error band: no published run backs this");
  return h(
    "p",
    { class: "v-sub" },
    groups && h("span", {}, groups.length > 1 ? t("Fullest GPU: {rank}", { rank: groupName(fullestOf(groups)) }) : t("All ranks alike")),
    verb === "serve" && loadOf(question),
    h("span", {}, bandLine),
    runtime && h("span", {}, String(runtime.value)),
    document.memory.basis && basis(document.memory.basis),
  );
}

/** The load that the verdict is of. */
function loadOf({ concurrency, context }) {
  if (!concurrency?.value || !context?.value) return null;
  const values = { users: fixed(concurrency.value), tokens: fixed(context.value) };
  return h("span", {}, concurrency.value === 1 ? t("At 1 user of {tokens} tokens", values) : t("At {users} users of {tokens} tokens", values));
}

function outdated(document) {
  return document.verdict.fits === false && (document.step_time || document.serving?.tpot_seconds)
    ? h("p", { class: "v-sub note" }, t("Speed and cost as they would be if it fitted"))
    : null;
}
