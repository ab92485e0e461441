/* How sure the answer is: its error bands, what it warns of, and what was assumed, each with where it is from. */
import { h, section } from "../dom.js";
import { fromOf } from "../inputs/fields.js";
import { inLabels, labelOf } from "../inputs/labels.js";
import { basis } from "../marks.js";
import { fixed, gib, said } from "../numbers.js";
import { readable } from "../sources.js";
import { t, tr } from "../words.js";
import { ofContext } from "./context.js";

export function draw(slot, answer) {
  if (!answer) return slot.replaceChildren();
  const { document } = answer;
  const texts = document.warnings.filter((text) => text !== ofContext(document));
  section(slot, t("How sure"), null,
    bands(document),
    texts.length ? [h("h3", {}, t("To know")), h("ul", {}, texts.map((text) => h("li", {}, inLabels(tr(text)))))] : null,
    [h("h3", {}, t("Assumed")), assumed(document)]);
}

/** Each figure that has a band, with the figure, its band, and how it is known. */
function bands({ verdict, memory, run, serving, step_time: step, question }) {
  const found = [
    [t("Memory of the fullest GPU"), memory, verdict.band, (value) => `${gib(value)} GiB`],
    [t("time of a step"), step, run?.step_time_band, (value) => said(value, "seconds")],
    [t("TTFT"), serving?.ttft_seconds, serving?.ttft_band, (value) => said(value, "seconds")],
    [t("TPOT"), serving?.tpot_seconds, serving?.tpot_band, (value) => said(value, "seconds")],
  ].filter(([, term]) => term);
  const row = ([name, term, band, write]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, write(term.value)), h("td", {}, band ? t("{low} to {high}", { low: write(band[0]), high: write(band[1]) }) : t("no published run backs this")), h("td", { class: "l" }, basis(term.basis)));
  const why = question.error_band?.why;
  return [
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("Error bands") }, h("table", { class: "sure" }, h("caption", { class: "vh" }, t("Error bands")),
      h("thead", {}, h("tr", {}, [[t("Figure"), "l"], [t("Estimate"), ""], [t("Error band"), ""], [t("Basis"), "l"]].map(([words, kind]) => h("th", { scope: "col", class: kind || null }, words)))), h("tbody", {}, found.map(row)))),
    why ? h("p", { class: "note source" }, tr(why)) : null,
  ];
}

/** Settings that nobody gave. */
function assumed({ question }) {
  const rows = Object.entries(question).filter(([name, entry]) => entry?.from && entry.from !== "given" && name !== "error_band" && name !== "model");
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("Assumed") }, h("table", { class: "assumed" }, h("caption", { class: "vh" }, t("Assumed")),
    h("thead", {}, h("tr", {}, [[t("Setting"), "l"], [t("Value"), ""], [t("Where it is from"), "l"]].map(([words, kind]) => h("th", { scope: "col", class: kind || null }, words)))),
    h("tbody", {}, rows.map(([name, entry]) => h("tr", {}, h("th", { scope: "row" }, labelOf(name) ?? h("code", {}, name)), h("td", {}, valueOf(entry.value)), h("td", { class: "l source" }, readable(fromOf(entry) ?? "")))))));
}

const valueOf = (value) => (value === null || value === undefined ? "–" : value === true ? t("on") : value === false ? t("off") : typeof value === "number" ? fixed(value, Number.isInteger(value) ? 0 : 3) : Array.isArray(value) ? value.join(", ") : tr(String(value)));
