/* The question as a sentence whose slots open the inputs behind them; below it what was understood, the button of all settings, and examples. */
import { html, useEffect, useState } from "../../vendor/preact.js";
import { Sign } from "../components.js";
import { $, fill } from "../dom.js";
import { change, state } from "../state.js";
import { t } from "../words.js";
import { clusterWords, MachineBox } from "./cluster.js";
import { Drawer, setOf } from "./drawer.js";
import { Examples } from "./examples.js";
import { Field, optionOf } from "./fields.js";
import { labelOf } from "./labels.js";
import { ModelBox, Resolved } from "./model.js";
import { Popover } from "./popover.js";
import { fieldsOf, PICKS, saidOf, sentenceOf, slotOf, slotsOf } from "./slots.js";

let opens = () => {};
/** Opens a slot of the sentence, or "settings". */
export const openSlot = (name) => opens(name);

/** `tab`, the `options` of its verb, its `answer` or null, `error` with the input that it is about as `at`. */
export function Question({ tab, options, answer, error }) {
  const [open, setOpen] = useState(null);
  opens = setOpen;
  useEffect(() => setOpen(null), [tab]);
  const sentence = sentenceOf(tab);
  if (!sentence) return null;
  const used = answer?.document.question;
  const ask = (name) => $(`[data-slot="${name}"]`);
  const close = (focus) => {
    if (focus) ask(open)?.focus();
    setOpen(null);
  };
  const slot = (name) => html`<${Slot} key=${name} name=${name} tab=${tab} used=${used} isOpen=${open === name} isWrong=${Boolean(error) && slotOf(tab, error.at) === name} press=${() => setOpen(open === name ? null : name)} />`;
  const slots = slotsOf(tab);
  const isAnswered = ["serve", "train", "tune"].includes(tab);
  const runtime = used && (used.runtime_version ?? used.engine_version ?? used.runtime ?? used.engine);
  const n = isAnswered ? setOf(tab, options) : 0;
  return html`<div class="ask-body">
    <h2 class="vh">${t("Question")}</h2>
    <p class="sentence" id="sentence">${together(fill(sentence, Object.fromEntries(slots.map((name) => [name, slot(name)]))))}</p>
    ${isAnswered ? html`<div class="resolved">
      ${answer && state.values.model ? html`<${Resolved} document=${answer.document} />` : null}
      <span><b id="cluster-words">${clusterWords()}</b></span>${runtime ? html`<span>${String(runtime.value)}</span>` : null}
      <button type="button" class=${`btn${error && !slotOf(tab, error.at) && options.has(error.at) ? " wrong" : ""}`} id="all-settings" data-slot="settings" aria-haspopup="dialog" onClick=${() => setOpen("settings")}><${Sign} kind="settings" />${t("All settings")}${n ? html` <span class="count">${n}</span>` : null}</button>
    </div>
    <${Examples} />` : null}
    ${open && open !== "settings" && slots.includes(open) && ask(open) ? html`<${Behind} key=${open} name=${open} tab=${tab} options=${options} answer=${answer} error=${error} slot=${ask(open)} close=${close} />` : null}
  </div>
  ${open === "settings" && isAnswered ? html`<${Drawer} tab=${tab} options=${options} answer=${answer} error=${error} close=${() => setOpen(null)} />` : null}`;
}

/** A bracket before a slot, and a comma, bracket or full stop after it, stand on its line. */
function together(pieces) {
  return pieces.flatMap((piece, at) => {
    if (typeof piece === "string") return [piece.slice(at && CLOSING.exec(piece)[0].length, OPENING.exec(piece).index)];
    const [before, after] = [pieces[at - 1], pieces[at + 1]].map((each) => (typeof each === "string" ? each : ""));
    const [opening, closing] = [OPENING.exec(before)[0], CLOSING.exec(after)[0]];
    return [opening || closing ? html`<span class="nw">${opening}${piece}${closing}</span>` : piece];
  });
}

const OPENING = /[（(]?$/u;
const CLOSING = /^[,，.。）)]*/u;

const NAMES = { machine: "on", users: "concurrency", lengths: null, data: "dataset_tokens", length: "sequence_length", batch: "global_batch_size", targets: null, purpose: "plan_for", places: "plan_on" };
const WORDS = { lengths: () => t("Lengths"), targets: () => t("Targets"), batch: () => t("Batch") };

/** What a slot is for, in words. */
const titleOf = (name) => WORDS[name]?.() ?? labelOf(NAMES[name] ?? name) ?? t("Settings");

function Slot({ name, tab, used, isOpen, isWrong, press }) {
  const { text, set } = saidOf(name, used);
  const fields = [...fieldsOf(tab, name), ...({ model: ["model"], machine: ["on", "nodes", "each"], purpose: ["plan_for"] }[name] ?? [])];
  return html`<button type="button" class=${`slot${set ? "" : " free"}${isWrong ? " wrong" : ""}`} data-slot=${name} data-fields=${fields.join(" ")} aria-haspopup="dialog" aria-expanded=${String(isOpen)} onClick=${press}>${text}${isWrong ? html`<span class="vh">${t(", needs attention")}</span>` : null}</button>`;
}

/** The inputs of a slot. */
function Behind({ name, tab, options, answer, error, slot, close }) {
  const done = () => close(true);
  const listed = fieldsOf(tab, name).map((field) => optionOf(field, options)).filter(Boolean);
  const [lead] = listed;
  const body = {
    model: () => html`<${ModelBox} error=${error} done=${done} />`,
    machine: () => html`<${MachineBox} error=${error} done=${done} />`,
    purpose: () => html`<${Purpose} done=${done} />`,
  }[name]?.() ?? html`<div class="rows">${listed.map((option) => html`<${Field} key=${option.name} option=${option} answer=${answer?.document} error=${error} />`)}</div>
    ${lead && PICKS[lead.name] ? html`<div class="picks">${PICKS[lead.name].map((value) => html`<button type="button" class="btn" onClick=${() => (change({ [lead.name]: value }), done())}>${value}</button>`)}</div>` : null}`;
  return html`<${Popover} slot=${slot} label=${titleOf(name)} wide=${name === "model" || name === "machine"} close=${close}><h3>${titleOf(name)}</h3>${body}<//>`;
}

function Purpose({ done }) {
  const now = state.values.plan_for === "serve" ? "serve" : "train";
  const choice = (value, words) => html`<button type="button" class="btn" aria-pressed=${String(now === value)} onClick=${() => (change({ plan_for: value }), done())}>${words}</button>`;
  return html`<div class="picks">${choice("train", t("Train"))}${choice("serve", t("Serve"))}</div>`;
}
