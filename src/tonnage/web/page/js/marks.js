/* Small signs that stand everywhere alike: the words of verdicts, the ladder of how a figure is known, the patterns of components. */
import { h } from "./dom.js";
import { s } from "./svg.js";
import { t, tr } from "./words.js";

export const WORDS = { fits: () => t("Fits"), tight: () => t("Tight"), no: () => t("Does not fit"), unknown: () => t("Not enough is known") };

/** fits, tight, no or unknown, of a document's verdict. Tight: what is usable lies inside the band. */
export function kindOf({ fits, needed_bytes: need, usable_bytes: usable, band }) {
  if (fits === true) return "fits";
  if (fits === false) return "no";
  return band && need !== null && usable !== null ? "tight" : "unknown";
}

const RUNGS = ["rule", "analytic", "traced", "measured"];
const BASES = { rule: () => t("rule"), analytic: () => t("analytic"), traced: () => t("traced"), measured: () => t("measured") };

/** How a figure is known: a ladder of four rungs and its word, never colour alone. */
export function basis(name) {
  const rungs = RUNGS.map((_, i) => s("rect", { class: i <= RUNGS.indexOf(name) ? "on" : null, x: i * 4 + 0.5, y: 7.5 - i * 2.3, width: 2, height: 3 + i * 2.3 }));
  return h("span", { class: "basis" }, s("svg", { viewBox: "0 0 15 11", "aria-hidden": "true" }, rungs), BASES[name]?.() ?? name);
}

/** Component -> its pattern. What has no pattern of its own is drawn as overhead is. */
const PATTERN_OF = {
  weights: "weights",
  gradients: "gradients",
  optimizer: "optimizer",
  activations: "activations",
  temporary: "temporary",
  "communication buffers": "comm",
  "runtime overhead": "overhead",
  "kv cache": "kv",
};
export const patternOf = (component) => PATTERN_OF[component] ?? (component.includes("cache") || component.includes("state") ? "kv" : "overhead");

/** A button that sets inputs. */
export const button = (words, press, more = {}) => h("button", { type: "button", class: "btn", onclick: press, ...more }, words);

export const name = (term) => tr(term.name);
