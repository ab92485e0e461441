/* A segment of a bar and its row of the table light up together. */
import { $$ } from "./dom.js";

export function listen() {
  document.addEventListener("pointerover", ({ target }) => light(target.closest?.("[data-part-name]")?.dataset.partName));
  document.addEventListener("focusin", ({ target }) => light(target.closest?.("tr[data-part-name]")?.dataset.partName));
}

let lit;

function light(part) {
  if (part === lit) return;
  lit = part;
  const drawn = part !== undefined && $$("rect[data-part-name]").some((each) => each.dataset.partName === part);
  for (const bars of $$(".bars")) bars.classList.toggle("dim", drawn);
  for (const each of $$("[data-part-name]")) each.classList.toggle("hot", each.dataset.partName === part);
}
