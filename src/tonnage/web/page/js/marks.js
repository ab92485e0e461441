/* Small signs that stand everywhere alike: the words of verdicts, the ladder of how a figure is known, the patterns of components. */
import { childPath, figure, offer } from "./card.js";
import { h } from "./dom.js";
import { LABELS, PART_OF } from "./palette.js";
import { s } from "./svg.js";
import { language, t, tr } from "./words.js";

export const WORDS = { fits: () => t("Fits"), tight: () => t("Tight"), no: () => t("Does not fit"), unknown: () => t("Not enough is known") };

/** fits, tight, no or unknown, of a document's verdict. Tight: what is usable lies inside the band. */
export function kindOf({ fits, needed_bytes: need, usable_bytes: usable, band }) {
  if (fits === true) return "fits";
  if (fits === false) return "no";
  return band && need !== null && usable !== null ? "tight" : "unknown";
}

const RUNGS = ["rule", "analytic", "traced", "measured"];
const BASES = { rule: () => t("rule of thumb"), calibrated: () => t("calibrated"), analytic: () => t("analytic"), traced: () => t("traced"), measured: () => t("measured") };

/** How a figure is known: a ladder of four rungs and its word, never colour alone. */
export function basis(name) {
  const rung = RUNGS.indexOf(name === "calibrated" ? "analytic" : name); // an analytic figure that own runs correct
  const rungs = RUNGS.map((_, i) => s("rect", { class: i <= rung ? "on" : null, x: i * 4 + 0.5, y: 7.5 - i * 2.3, width: 2, height: 3 + i * 2.3 }));
  return h("span", { class: "basis" }, s("svg", { viewBox: "0 0 15 11", "aria-hidden": "true" }, rungs), BASES[name]?.() ?? name);
}

/** Component -> its pattern. What has no pattern of its own is drawn as the runtime is. */
export const patternOf = (component) => PART_OF[component] ?? (component.includes("cache") || component.includes("state") ? "kv" : "overhead");

/** A button that sets inputs. */
export const button = (words, press, more = {}) => h("button", { type: "button", class: "btn", onclick: press, ...more }, words);

/** What a TERM is called; a part of memory by the label that reports and plots have too. */
export const name = (term) => (term.unit === "bytes" && LABELS[language()]?.[PART_OF[term.name]]) || tr(term.name);

/** Whether a part of memory is what the engine does not use. */
export const isUnused = (term) => term.name.startsWith("left unused by ");

/** What a rank's memory is made of: [{term, value, label, pattern, at, where}], the components of a TERM at a path. What the engine leaves unused is
    apart from the runtime, and last. `at`: the path of the component; `where`: that of the figure's card. */
export function segmentsOf(memory, from) {
  const unused = [];
  const parts = memory.children.map((term, index) => {
    const at = childPath(from, memory, index);
    const segment = { term, value: term.value, label: name(term), pattern: patternOf(term.name), at, where: at };
    const left = term.children.findIndex(isUnused);
    if (left < 0) return segment;
    const child = term.children[left];
    const place = childPath(at, term, left);
    unused.push({ term: child, value: child.value, label: tr(child.name).replace(/ ?[(（].*$/u, ""), pattern: "reserved", at: place, where: place });
    const where = `used of ${at.replaceAll("\u203a", " ")}`;
    offer(where, figure(segment.label, term.value - child.value, "bytes", { combine: "sum", basis: term.basis, children: term.children.filter((each) => each !== child) }));
    return { ...segment, value: term.value - child.value, where };
  });
  return [...parts, ...unused];
}
