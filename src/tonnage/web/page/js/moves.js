/* Moves that an answer advises: what changes in plain words, which of them is recommended, and a button that makes one. */
import { h } from "./dom.js";
import { announceNext } from "./announce.js";
import { kindOf } from "./marks.js";
import { phrase } from "./phrases.js";
import { change } from "./state.js";
import { meets, missedOf } from "./targets.js";
import { t } from "./words.js";

const plain = (value) => (value === true ? t("on") : value === false ? t("off") : String(value));

/** "full recomputation, optimizer states in host memory": each change as a phrase. What would change by itself and is held is said to stay. */
export function named(move, document) {
  return Object.entries(move.change).map(([name, value]) => {
    const before = document.question[name]?.value ?? null;
    if (before !== null && plain(before) === plain(value)) return isChosen(name, document) ? null : h("span", { class: "move held" }, t("{option} stays", { option: phrase(name, value) }));
    return h("span", { class: "move" }, phrase(name, value));
  }).filter(Boolean);
}

const isChosen = (name, document) => name in (document.chosen?.change ?? {});

const known = (value) => value !== null && value !== undefined;

/** Whether anything is known of how fast it then is. */
export const isTimed = (move) => known(move.time_change) || known(move.tpot_seconds) || known(move.step_seconds);

/** The move to make, or null. Where it fits already only what changes neither workload nor numerics and saves time or money. Else the cheapest that keeps
    the machine too, which is what somebody has; then another machine, then what changes more, each of known speed first. All of them fit and meet the
    targets at the high end of the error band. */
export function recommended(document) {
  const good = document.advice.filter((move) => move.fits && meets(move, document));
  const same = good.filter((move) => ["nothing", "machine"].includes(move.changes));
  if (kindOf(document.verdict) === "fits" && !document.verdict.missed && !missedOf(document)) return same.filter(saves).sort(byMoney)[0] ?? null;
  const own = same.filter((move) => move.changes === "nothing" && isTimed(move));
  const [found] = [own, same.filter(isTimed), same, good.filter(isTimed), good].find((moves) => moves.length)?.toSorted(byMoney) ?? [];
  return found ?? null;
}

const saves = (move) => (move.usd_change ?? 0) < 0 || (!known(move.usd_change) && (move.time_change ?? 0) < 0);
const byMoney = (one, other) => (one.usd_per_million_tokens ?? Infinity) - (other.usd_per_million_tokens ?? Infinity);

/** The button that makes the move; the new verdict is announced when it is there. */
export function apply(move, kind = "") {
  const press = () => {
    announceNext();
    change(move.change);
  };
  return h("button", { type: "button", class: `btn ${kind}`.trim(), "data-key": `apply ${move.text}`, "aria-label": `${t("Apply")}: ${move.text}`, onclick: press }, t("Apply"));
}
