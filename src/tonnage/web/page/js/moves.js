/* Moves that an answer advises: what changes, and a button that changes it. */
import { fill, h } from "./dom.js";
import { announceNext } from "./announce.js";
import { labelOf } from "./inputs/labels.js";
import { change } from "./state.js";
import { gib, change as changeText, said, usd } from "./numbers.js";
import { t } from "./words.js";

/** "Recompute none → full, offload_optimizer cpu": in the words of the inputs; an option without any as it is typed. What would change by
    itself and is held is said to stay. */
export function named(move, document) {
  return Object.entries(move.change).map(([name, value]) => {
    const before = document.question[name]?.value ?? null;
    const words = [labelOf(name) ?? h("code", {}, name), " "];
    if (before !== null && shown(before) === shown(value)) return h("span", { class: "move held" }, fill(t("{option} stays {value}"), { option: h("span", {}, words[0]), value: shown(value) }));
    return h("span", { class: "move" }, words, before === null ? null : `${shown(before)} → `, shown(value));
  });
}

const shown = (value) => (value === true ? t("on") : value === false ? t("off") : String(value));

const known = (value) => value !== null && value !== undefined;

/** Whether anything is known of how fast it then is. */
export const isTimed = (move) => known(move.time_change) || known(move.tpot_seconds);

/** A move in one line: its names, what it frees, what it costs in time and money: beside now, or where nothing is known of now, then. */
export function described(move, document) {
  const facts = [freed(move)];
  if (known(move.time_change)) facts.push(t("{change} cluster time a token", { change: changeText(move.time_change) }));
  else if (known(move.tpot_seconds)) facts.push(t("TPOT {time}", { time: said(move.tpot_seconds, "seconds") }));
  else facts.push(t("its speed is not known"));
  if (known(move.usd_change)) facts.push(t("{change} money a token", { change: changeText(move.usd_change) }));
  else if (known(move.usd_per_million_tokens)) facts.push(t("{usd} per 1M tokens", { usd: usd(move.usd_per_million_tokens) }));
  if (move.provider) facts.push(t("price of {provider}", { provider: move.provider }));
  return [h("span", { class: "moves" }, named(move, document)), h("span", {}, facts.join(t(", ")))];
}

export function freed(move) {
  const bytes = move.freed_bytes;
  return bytes >= 0 ? t("frees {b} GiB", { b: gib(bytes) }) : t("costs {b} GiB", { b: gib(-bytes) });
}

/** The button that makes the move; the new verdict is announced when it is there. */
export function apply(move, kind = "") {
  const press = () => {
    announceNext();
    change(move.change);
  };
  return h("button", { type: "button", class: `btn ${kind}`.trim(), "data-key": `apply ${move.text}`, "aria-label": `${t("Apply")}: ${move.text}`, onclick: press }, t("Apply"));
}
