/* The views of an answer as tabs: arrows, Home and End go from one to the next. What to do with the answer stands at the right. */
import { html, render } from "../../vendor/preact.js";
import { Sign } from "../components.js";
import { keepView, state, VIEWS } from "../state.js";
import { t } from "../words.js";
import { PinButton } from "./tray.js";

const NAMES = { memory: () => t("Memory"), time: () => t("Time"), cost: () => t("Cost"), options: () => t("Options"), sure: () => t("How sure") };
let turned = () => {};

/** `listener` is called when another view was opened. */
export const onTurn = (listener) => (turned = listener);

/** Opens a view, and puts the focus on its tab. */
export function turnTo(view) {
  if (view !== state.view) {
    keepView(view);
    turned();
  }
  document.getElementById(`view-${view}`)?.focus();
}

export function draw(slot, answer) {
  render(answer ? html`<${Views} answer=${answer} warnings=${answer.document.warnings?.length ?? 0} />` : null, slot);
}

function Views({ answer, warnings }) {
  const keys = (event) => {
    const at = VIEWS.indexOf(state.view);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    turnTo(VIEWS.at(to % VIEWS.length));
  };
  return html`<div class="views" role="tablist" aria-label=${t("Parts of the answer")} onKeyDown=${keys}>${VIEWS.map((view) => {
    const is = view === state.view;
    return html`<button type="button" role="tab" id=${`view-${view}`} key=${view} aria-selected=${String(is)} aria-controls="panel" tabindex=${is ? 0 : -1} onClick=${() => turnTo(view)}>${NAMES[view]()}${view === "sure" && warnings ? html` <span class="count">${warnings}</span>` : null}</button>`;
  })}</div>
  <div class="end"><${PinButton} answer=${answer} /><button type="button" class="btn plain" id="print" onClick=${() => print()}><${Sign} kind="print" />${t("Print")}</button></div>`;
}
