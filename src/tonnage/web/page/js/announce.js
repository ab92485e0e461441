/* The verdict of the next answer is told to a screen reader where somebody asked for a change by a button; typing is not interrupted. */
import { say } from "./dom.js";
import { kindOf, WORDS } from "./marks.js";
import { phrases } from "./phrases.js";
import { missedOf } from "./targets.js";
import { t, tr } from "./words.js";

let wanted = false;

export function announceNext() {
  wanted = true;
}

export function announce(document) {
  if (wanted) say(spoken(document));
  wanted = false;
}

function spoken(document) {
  const { verdict, chosen } = document;
  const missed = verdict.fits ? (verdict.missed ? tr(verdict.missed) : missedOf(document)) : "";
  if (missed) return t("Fits, but {missed}", { missed });
  if (verdict.fits && chosen) return t("Fits with {chosen}", { chosen: phrases(chosen.change) });
  return WORDS[kindOf(verdict)]();
}
