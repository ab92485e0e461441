/* What nobody gave and was chosen so that it fits: each value with a button that keeps it as the user's own and one that takes the default instead;
   and the switch that chooses nothing. */
import { announceNext } from "../announce.js";
import { h } from "../dom.js";
import { said } from "../numbers.js";
import { phrase } from "../phrases.js";
import { change, state } from "../state.js";
import { t, tr } from "../words.js";

const isPlain = () => state.values.as_is === "true";

export function chosen(document) {
  const made = document.chosen;
  if (!made && !isPlain()) return null;
  const entries = Object.entries(made?.change ?? {});
  return h("div", { class: "v-chosen", role: "group", "aria-label": t("Chosen for you") },
    made ? h("b", {}, t("Chosen for you")) : null, entries.map(([name, value]) => pick(name, value)), made ? h("small", {}, reason(document)) : null, defaults());
}

function pick(name, value) {
  const words = phrase(name, value);
  return h("span", { class: "pick" }, h("span", {}, words),
    press(t("Keep"), `keep ${name}`, `${t("Keep")}${t(": ")}${words}`, { [name]: value }),
    press(t("Use default"), `default ${name}`, `${t("Use default")}${t(": ")}${words}`, { as_is: "true" }));
}

function press(words, key, label, values) {
  const set = () => {
    announceNext();
    change(values);
  };
  return h("button", { type: "button", "data-key": key, "aria-label": label, onclick: set }, words);
}

/** Why it was chosen, and what it costs in time where that is known. */
function reason({ chosen: made, question, step_time: step }) {
  const why = Object.keys(made.change).map((name) => question[name]).find((entry) => entry?.from === "chosen")?.why;
  const slower = made.step_seconds && step ? t("a step takes {now} instead of {then}", { now: said(step.value, "seconds"), then: said(made.step_seconds, "seconds") }) : "";
  return [why ? tr(why) : "", slower].filter(Boolean).join(t("; "));
}

function defaults() {
  const toggle = ({ target }) => {
    announceNext();
    change({ as_is: target.checked ? "true" : null });
  };
  return h("label", { class: "switch" }, h("input", { type: "checkbox", role: "switch", id: "defaults-only", checked: isPlain(), onchange: toggle }), h("span", {}, t("Defaults only")));
}
