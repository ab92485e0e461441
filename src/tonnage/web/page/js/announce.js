/* The verdict of the next answer is told to a screen reader where somebody asked for a change by a button; typing is not interrupted. */
import { say } from "./dom.js";
import { kindOf, WORDS } from "./marks.js";
import { t, tr } from "./words.js";

let wanted = false;

export function announceNext() {
  wanted = true;
}

export function announce(document) {
  const { verdict } = document;
  if (wanted) say(verdict.fits && verdict.missed ? t("Fits, but {missed}", { missed: tr(verdict.missed) }) : WORDS[kindOf(verdict)]());
  wanted = false;
}
