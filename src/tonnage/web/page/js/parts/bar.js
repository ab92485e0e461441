/* The memory of the fullest GPU as one bar below the verdict, with the error band, the usable line, and a legend that carries the figures. */
import { h, widthOf } from "../dom.js";
import { fullestOf, groupsOf } from "../ranks.js";
import { t } from "../words.js";
import { drawing, key } from "./bars.js";

export function draw(slot, answer) {
  slot.setAttribute("aria-label", t("Memory of the fullest GPU"));
  if (!answer) return slot.replaceChildren();
  const { document } = answer;
  const groups = [fullestOf(groupsOf(document))];
  const plot = h("div", { class: "plot" });
  slot.replaceChildren(plot, key(document, groups, true));
  plot.append(drawing(document, groups, widthOf(plot, "bar", 320)));
}
