/* Why replicas do not fit that hold every request at the whole context, and what the requests that were asked about need: said below the verdict,
   as few requests are so long. */
import { h } from "../dom.js";
import { inLabels } from "../inputs/labels.js";
import { fixed } from "../numbers.js";
import { change } from "../state.js";
import { t, tr } from "../words.js";

const SAID = /^the verdict holds .* With the ([\d,]+) tokens .*, which (fits|does not fit)/;

/** The sentence of the answer's that says so, or undefined. */
export const ofContext = (document) => (document.verdict.fits === false ? document.warnings.find((text) => SAID.test(text)) : undefined);

/** It and, where the requests fit, a button that holds no more than they need. */
export function shorter(document) {
  const text = ofContext(document);
  if (!text) return null;
  const [, tokens, found] = SAID.exec(text);
  const press = () => change({ context: tokens.replaceAll(",", "") });
  const words = inLabels(tr(text));
  return h("div", { class: "v-next why" }, h("p", {}, words[0].toUpperCase() + words.slice(1)),
    found === "fits" ? h("button", { type: "button", class: "btn", "data-key": "shorter context", onclick: press }, t("Ask with a context of {tokens} tokens", { tokens: fixed(Number(tokens.replaceAll(",", ""))) })) : null);
}
