/* Print: light, and all that is folded stands open. What was set on the screen comes back afterwards. */
import { $$ } from "./dom.js";

let before = null;

/** Whether the page is being printed. */
export const isPrinting = () => before !== null;

addEventListener("beforeprint", () => {
  const root = document.documentElement;
  const folded = $$("details").filter((each) => !each.open);
  before = { theme: root.dataset.theme, folded };
  root.dataset.theme = "light";
  for (const each of folded) each.open = true;
});

addEventListener("afterprint", () => {
  if (!before) return;
  document.documentElement.dataset.theme = before.theme;
  for (const each of before.folded) each.open = false;
  before = null;
});
