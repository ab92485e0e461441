/* What the answer warns of. */
import { h, section } from "../dom.js";
import { inLabels } from "../inputs/labels.js";
import { t, tr } from "../words.js";
import { ofContext } from "./context.js";

export function draw(slot, answer) {
  const texts = answer ? answer.document.warnings.filter((text) => text !== ofContext(answer.document)) : [];
  if (!texts.length) return slot.replaceChildren();
  section(slot, t("To know"), null, h("ul", {}, texts.map((text) => h("li", {}, inLabels(tr(text))))));
}
