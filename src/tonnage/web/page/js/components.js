/* What the parts that keep a state share, as Preact draws them. js/dom.js has the same for what is drawn by hand. */
import { html } from "../vendor/preact.js";
import { state } from "./state.js";

/** A disc, triangle, square or rhombus: the shape that a verdict has beside its colour. `kind`: fits, tight, no, unknown. */
export const Icon = ({ kind }) => html`<svg class=${`g ${kind}`} aria-hidden="true"><use href=${`#i-${kind}`} /></svg>`;

/** A small drawing on a button. `kind`: settings, pin, print, close. */
export const Sign = ({ kind }) => html`<svg class="sign" aria-hidden="true"><use href=${`#s-${kind}`} /></svg>`;

/** A number that opens its card, as `number` of js/card.js. */
export const Figure = ({ where, children }) => html`<button type="button" class="n" data-card=${where} aria-controls="inspector" aria-pressed=${String(state.card === where)}>${children}</button>`;
