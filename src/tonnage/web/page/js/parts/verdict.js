/* Whether it fits: a shape and a word, and one sentence. What is below the bar stands in parts/below.js. */
import { number, path } from "../card.js";
import { fill, h, icon } from "../dom.js";
import { repairsOf } from "../inputs/errors.js";
import { inLabels } from "../inputs/labels.js";
import { kindOf, WORDS } from "../marks.js";
import { gib } from "../numbers.js";
import { phrases } from "../phrases.js";
import { missedOf } from "../targets.js";
import { t, tr } from "../words.js";

const SENTENCES = {
  fits: () => t("{need} of {usable} GiB usable per GPU, {spare} GiB to spare"),
  tight: () => t("{need} of {usable} GiB usable per GPU; the error band reaches {high} GiB"),
  no: () => t("{need} GiB needed, {usable} GiB usable per GPU, {over} GiB over"),
};

export function draw(slot, answer, state) {
  slot.setAttribute("aria-labelledby", "v-line");
  if (state.waiting) return slot.replaceChildren(...waiting(state));
  if (!answer) return slot.replaceChildren(...(state.error ? refused(state) : nothing()));
  slot.replaceChildren(...[state.error && banner(state), headline(answer.document)].filter(Boolean));
}

/** The word with its shape, and its sentence. */
function line(kind, words, sentence = null) {
  return h("div", { class: "v-line", id: "v-line" }, h("h1", { class: `word ${kind ?? ""}` }, kind ? icon(kind) : null, words), " ", sentence ? h("p", { class: "lead" }, sentence) : null);
}

function nothing() {
  return [line("unknown", h("span", { class: "plain" }, t("Name a model to begin"))), h("p", { class: "v-sub" }, t("Or start from one of the examples"))];
}

function refused(state) {
  const { error, field } = state;
  if (error.kind === "MissingDatum") return [line("unknown", h("strong", {}, WORDS.unknown())), said(error)];
  return [line("no", h("span", { class: "plain" }, field ? t("One input needs attention: {field}", { field }) : t("This cannot be answered"))), said(error), mends(state)];
}

const said = (error) => h("p", { class: "v-sub" }, inLabels(tr(error.message)));

function waiting(state) {
  return [
    line("unknown", h("span", { class: "plain" }, state.waiting)),
    h("div", { class: "progress", role: "progressbar", "aria-label": state.waiting }, h("i")),
    h("p", { class: "v-sub" }, h("button", { type: "button", class: "btn", id: "cancel", onclick: state.cancel }, t("Cancel"))),
  ];
}

function banner(state) {
  const { error, field } = state;
  const words = field ? t("Showing the last valid answer. One input needs attention: {field}", { field }) : t("Showing the last valid answer.");
  return h("div", { class: "v-next bad" }, icon("no"), h("div", {}, h("b", {}, words), h("p", {}, inLabels(tr(error.message))), mends(state)));
}

/** Buttons for what the message says would work. */
function mends({ error }) {
  const repairs = repairsOf(error, error.at);
  return repairs.length ? h("p", { class: "mends" }, repairs.map(([value, press]) => h("button", { type: "button", class: "btn", "data-repair": value, "data-key": `repair ${value}`, onclick: press }, value))) : "";
}

/** The word and what belongs to it: what was chosen, or what is missed. [nodes, shape] */
function wordOf(kind, document) {
  const { verdict, chosen: made } = document;
  const missed = verdict.missed ? tr(verdict.missed) : kind === "fits" ? missedOf(document) : "";
  const large = (words) => ({ word: h("span", { class: "large" }, words) });
  const fits = large(WORDS[kind]());
  if (kind === "fits" && missed) return [fill(t("{word}, but {missed}"), { ...fits, missed }), "tight"];
  if (kind === "no" && missed) return [fill(t("{word}: {missed}"), { ...fits, missed }), kind];
  if (["fits", "tight"].includes(kind) && made) return [fill(t("{word} with {chosen}"), { ...fits, chosen: phrases(made.change) }), kind];
  return [[fits.word], kind];
}

function headline(document) {
  const kind = kindOf(document.verdict);
  const { needed_bytes: need, usable_bytes: usable, band } = document.verdict;
  const [words, shape] = wordOf(kind, document);
  const word = h("strong", {}, words, h("span", { class: "vh" }, t(": ").trimEnd()));
  // What the hosts cannot hold may well fit on the GPUs.
  const sentence = kind === "no" && need <= usable ? SENTENCES.fits : SENTENCES[kind];
  if (!sentence || need === null || usable === null) {
    return line(kind, word, need === null ? null : fill(t("{need} GiB needed per GPU"), { need: number("memory", gib(need)) }));
  }
  const figures = {
    need: number("memory", gib(need)),
    usable: number(path("page", "usable"), gib(usable)),
    spare: number(path("page", "spare"), gib(usable - need)),
    over: number(path("page", "over"), gib(need - usable)),
    high: band && number(path("page", "high"), gib(band[1])),
  };
  return line(shape, word, fill(sentence(), figures));
}
