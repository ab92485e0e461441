/* Changes that were estimated again, each with a button that makes it; the nearest miss where none fits; then what the answer warns of. */
import { figure, number, offer, path } from "../card.js";
import { h, icon, section } from "../dom.js";
import { WORDS } from "../marks.js";
import { apply, freed, named } from "../moves.js";
import { inLabels } from "../inputs/labels.js";
import { change, gib, said, usd } from "../numbers.js";
import { t, tr } from "../words.js";
import { ofContext } from "./context.js";

const FIRST = 5; // moves that are shown at once
let unfolded = false; // the others stay open while the answer changes

const CHANGES = {
  nothing: () => t("same result"),
  machine: () => t("another machine"),
  workload: () => t("another workload"),
  numerics: () => t("other numerics"),
  method: () => t("another method"),
};

export function draw(slot, answer) {
  if (!answer) return slot.replaceChildren();
  slot.classList.toggle("old", !answer.settled);
  slot.setAttribute("aria-busy", String(!answer.settled));
  if (!answer.settled) return slot.children.length ? undefined : section(slot, t("Next best moves"), null, h("p", { class: "note waiting" }, t("Working it out…")));
  const { document } = answer;
  offer("advice", document.advice.map((move) => terms(move, document)));
  const note = !document.advice.length ? null : answer.verb === "serve"
    ? t("Memory: of the fullest GPU. Time: of the whole cluster for one token of input or output, not TPOT. Money: for the same token")
    : t("Memory: of the fullest GPU. Time: of the whole cluster for one token. Money: for the same token");
  const found = answer.unadvised ? [h("p", { class: "note" }, tr(answer.unadvised))] : [moves(document), miss(document)];
  section(slot, t("Next best moves"), note, ...found, warnings(document));
}

function moves(document) {
  const rows = document.advice.map((move, i) => row(move, i, document));
  if (rows.length) return [h("ol", { class: "advice" }, rows.slice(0, FIRST)), rows.length > FIRST ? more(rows.slice(FIRST)) : null];
  return document.nearest_miss ? null : h("p", { class: "note" }, t("None that was tried is better."));
}

function more(rows) {
  const fold = h("details", { class: "more", open: unfolded }, h("summary", { id: "more-moves" }, t("{n} more", { n: rows.length })), h("ol", { class: "advice", start: FIRST + 1 }, rows));
  fold.addEventListener("toggle", () => (unfolded = fold.open));
  return fold;
}

function row(move, i, document) {
  const kind = move.fits && move.serves !== false ? "fits" : "no";
  return h(
    "li",
    {},
    h("span", { class: "moves" }, named(move, document), h("small", {}, [CHANGES[move.changes](), user(move), market(move)].filter(Boolean).join(" · "))),
    h("span", {}, number(path("advice", i, "freed"), freed(move))),
    h("span", {}, part(i, "time", move.time_change, change, t("cluster time a token"), t("time unknown"))),
    h("span", {}, part(i, "money", ...(known(move.usd_change) || !known(move.usd_per_million_tokens) ? [move.usd_change, change, t("money a token")] : [move.usd_per_million_tokens, usd, t("per 1M tokens")]), t("money unknown"))),
    h("span", { class: kind }, icon(kind), " ", move.fits && kind === "no" ? t("Fits, not in time") : WORDS[kind]()),
    apply(move),
  );
}

const known = (value) => value !== null && value !== undefined;

/** A figure of a move over what it is of. */
function part(i, name, value, write, words, unknown) {
  return known(value) ? [number(path("advice", i, name), write(value)), h("small", {}, words)] : h("span", { class: "unknown" }, unknown);
}

/** What one user of a served model then waits for. */
const user = (move) => (known(move.tpot_seconds) ? t("TPOT {time}", { time: said(move.tpot_seconds, "seconds") }) : null);

/** Whose price it has, where that is not the provider of the machine that was asked about. */
const market = (move) => (move.provider ? t("price of {provider}", { provider: move.provider }) : null);

/** The figures of a move, which the answer states without TERMs. */
function terms(move, document) {
  const now = document.memory;
  const then = figure(t("needed then"), move.needed_bytes, "bytes", { basis: now.basis, text: t("estimated again with the change"), source: move.text });
  const made = { freed: figure(move.freed_bytes >= 0 ? t("freed on the fullest GPU") : t("costs on the fullest GPU"), Math.abs(move.freed_bytes), "bytes", { combine: "difference", basis: now.basis, children: move.freed_bytes >= 0 ? [now, then] : [then, now], source: move.text }) };
  const million = known(move.usd_per_million_tokens) ? figure(t("a million tokens then"), move.usd_per_million_tokens, "USD", { text: t("estimated again with the change"), source: move.text }) : null;
  if (known(move.time_change)) {
    made.time = figure(t("change of the cluster's time for a token"), move.time_change, "", { text: t("time then / time now - 1; time = 1 / tokens a second of all accelerators"), source: move.text });
  }
  if (known(move.usd_change)) {
    made.money = figure(t("change of the money for a token"), move.usd_change, "", { text: t("money then / money now - 1, both estimated"), source: move.text, children: million ? [million] : [] });
  } else if (million) made.money = million;
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

function warnings(document) {
  const texts = document.warnings.filter((text) => text !== ofContext(document));
  if (!texts.length) return null;
  return h("div", { class: "warnings" }, h("h3", {}, t("To know")), h("ul", {}, texts.map((text) => h("li", {}, inLabels(tr(text))))));
}
