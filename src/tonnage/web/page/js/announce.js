/* The verdict of the next answer is told to a screen reader where somebody asked for a change by a button; typing is not interrupted. */
import { say } from "./dom.js";
import { kindOf, WORDS } from "./marks.js";

let wanted = false;

export function announceNext() {
  wanted = true;
}

export function announce(document) {
  if (wanted) say(WORDS[kindOf(document.verdict)]());
  wanted = false;
}
