/* Whether it fits, in one sentence; then on which rank, how sure that is and of which runtime; then the best move where one is needed. */
import { number, path } from "../card.js";
import { fill, h, icon } from "../dom.js";
import { basis, kindOf, WORDS } from "../marks.js";
import { inLabels } from "../inputs/labels.js";
import { apply, described, isTimed } from "../moves.js";
import { gib } from "../numbers.js";
import { fullestOf, groupName, groupsOf } from "../ranks.js";
import { t, tr } from "../words.js";
import { shorter } from "./context.js";
import { examples } from "./examples.js";

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
    ...[state.error && banner(state), headline(document), shorter(document), basics(document), bestMove(answer), outdated(document)].filter(Boolean),
  );
}

function line(kind, ...words) {
  return h("h1", { class: "v-line", id: "v-line" }, kind ? icon(kind) : null, h("span", {}, words));
}

function nothing() {
  return [line("unknown", t("Name a model to begin")), examples()];
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

function headline(document) {
  const kind = kindOf(document.verdict);
  const { needed_bytes: need, usable_bytes: usable, band } = document.verdict;
  const missed = kind === "fits" && document.verdict.missed;
  const word = h("strong", {}, missed ? t("Fits, but {missed}", { missed: tr(missed) }) : WORDS[kind](), t(": ").trimEnd());
  const sentence = SENTENCES[kind];
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
  return line(missed ? "tight" : kind, fill(sentence(), figures));
}

function basics(document) {
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
    h("span", {}, bandLine),
    runtime && h("span", {}, String(runtime.value)),
    document.memory.basis && basis(document.memory.basis),
  );
}

/** The first change that makes it fit, of those whose speed is known where there are such. */
function bestMove({ document, settled }) {
  if (kindOf(document.verdict) === "fits") return null;
  if (!settled) return h("p", { class: "v-next" }, h("b", {}, t("Next best move")), t("Working it out…"));
  const fitting = document.advice.filter((each) => each.fits);
  const move = fitting.find(isTimed) ?? fitting[0];
  if (!move) return null;
  return h("p", { class: "v-next" }, h("b", {}, t("Next best move")), described(move, document), apply(move, "go"));
}

function outdated(document) {
  return document.verdict.fits === false && (document.step_time || document.serving?.tpot_seconds)
    ? h("p", { class: "v-sub note" }, t("Speed and cost as they would be if it fitted"))
    : null;
}
