/* What components that keep state share: numbers with a card, icons, and a slot that Preact draws into. */
import { Fragment, html, render } from "../vendor/preact.js";
import { state } from "./state.js";

/** A number that opens its card, as `number` of card.js. */
export const Num = ({ where, children, ...more }) => html`<button type="button" class="n" data-card=${where} aria-controls="inspector" aria-pressed=${String(state.card === where)} ...${more}>${children}</button>`;

/** The shape that a verdict has beside its colour. */
export const Icon = ({ kind }) => html`<svg class=${`g ${kind}`} aria-hidden="true"><use href=${`#i-${kind}`} /></svg>`;

/** A table that may be wider than its column: it scrolls by itself, and the keyboard reaches it. */
export const Scroll = ({ label, children }) => html`<div class="scroll" tabindex="0" role="group" aria-label=${label}>${children}</div>`;

/** Puts components into a sentence: `filled("of {a} left", {a})`. */
export const filled = (sentence, parts) => html`<${Fragment}>${sentence.split(/\{(\w+)\}/).map((piece, i) => (i % 2 ? (parts[piece] ?? `{${piece}}`) : piece))}<//>`;

/** Draws a component into a section's slot, which Preact has for itself from then on, and names the section by its heading. */
export function drawInto(slot, view) {
  (slot.closest("section, footer") ?? slot).setAttribute("aria-labelledby", `h-${slot.dataset.part}`);
  if (!("kept" in slot.dataset)) slot.replaceChildren();
  slot.dataset.kept = "";
  render(view, slot);
}

export { Fragment, html };
