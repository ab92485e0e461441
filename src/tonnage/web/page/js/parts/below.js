/* What stands below the bar: at which load, on which rank and how sure the verdict is, what room there is, and what was chosen so that it fits. */
import { number, path } from "../card.js";
import { fill, h } from "../dom.js";
import { basis } from "../marks.js";
import { fixed } from "../numbers.js";
import { fullestOf, groupName, groupsOf } from "../ranks.js";
import { t } from "../words.js";
import { chosen } from "./chosen.js";
import { shorter } from "./context.js";

export function draw(slot, answer) {
  slot.setAttribute("aria-label", t("What the verdict is of"));
  if (!answer) return slot.replaceChildren();
  const { document, verb } = answer;
  slot.replaceChildren(...[shorter(document) ?? room(document), basics(document, verb), chosen(document), outdated(document)].filter(Boolean));
}

/** How many requests fit at once, in all and as far as the error band lets one be sure. */
function room({ serving, question, verdict }) {
  const { concurrency: most, safe_concurrency: safe, longest_context: longest } = serving ?? {};
  if (!most || !question.context?.value || verdict.fits === false) return null;
  const words = { most: number(path("serving", "concurrency"), fixed(most.value)), tokens: fixed(question.context.value), safe: safe && number(path("serving", "safe_concurrency"), fixed(safe.value)), longest: longest && number(path("serving", "longest_context"), fixed(longest.value)) };
  const one = most.value === 1 && (!safe || safe.value === 1);
  const sentence = one ? (longest ? t("room for one request of {tokens} tokens; the longest one has {longest} tokens") : t("room for one request of {tokens} tokens")) : safe && longest ? t("room for {most} requests of {tokens} tokens, {safe} with the error band; the longest single one has {longest} tokens") : t("room for {most} requests of {tokens} tokens");
  return h("p", { class: "worst" }, h("b", {}, t("At most")), t(": "), fill(sentence, words));
}

function basics(document, verb) {
  const { question, verdict } = document;
  const groups = document.ranks && groupsOf(document); // a summary has no ranks
  return h(
    "p",
    { class: "v-sub" },
    groups && h("span", {}, groups.length > 1 ? t("Fullest GPU: {rank}", { rank: groupName(fullestOf(groups)) }) : t("All ranks alike")),
    verb === "serve" && loadOf(question),
    verdict.band ? null : h("span", {}, t("No error band: no published run backs this")),
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
