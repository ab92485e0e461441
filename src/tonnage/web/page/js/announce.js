/* The verdict of the next answer is told, with a way back, where somebody asked for a change by a button; typing is not interrupted. */
import { $, say } from "./dom.js";
import { kindOf, WORDS } from "./marks.js";
import { phrases } from "./phrases.js";
import { canUndo } from "./state.js";
import { missedOf } from "./targets.js";
import { t, tr } from "./words.js";

const STAYS = 12_000; // ms that what was told stays in sight; the header undoes too
let wanted = false;
let clock = 0;

export function announceNext() {
  wanted = true;
}

export function announce(document) {
  if (wanted) {
    say(spoken(document));
    if (canUndo()) told(spoken(document));
  } else hush();
  wanted = false;
}

function told(text) {
  clearTimeout(clock);
  $("#toast-text").textContent = text;
  $("#toast").hidden = false;
  clock = setTimeout(hush, STAYS);
}

/** Takes what was told out of sight. */
export function hush() {
  if ($("#toast").contains(document.activeElement)) return; // somebody is about to press
  $("#toast").hidden = true;
}

function spoken(document) {
  const { verdict, chosen } = document;
  const missed = verdict.fits ? (verdict.missed ? tr(verdict.missed) : missedOf(document)) : "";
  if (missed) return t("Fits, but {missed}", { missed });
  if (verdict.fits && chosen) return t("Fits with {chosen}", { chosen: phrases(chosen.change) });
  return WORDS[kindOf(verdict)]();
}
