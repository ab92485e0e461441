/* The question of the page: drawn as a sentence with the inputs behind it, and checked before it is asked. */
import { html, render } from "../../vendor/preact.js";
import { $ } from "../dom.js";
import * as targets from "../targets.js";
import * as cluster from "./cluster.js";
import { fieldOf } from "./errors.js";
import * as labels from "./labels.js";
import { Question } from "./question.js";

let options = new Map(); // of the tab's verb
let built = "";

/** Takes up the options of a tab's verb. */
export function build(tab, rows) {
  if (built === tab) return;
  built = tab;
  options = new Map(rows.map((each) => [each.name, each]));
  labels.learn(options.keys());
}

/** Throws Refused where an input holds what cannot be asked. */
export function check() {
  cluster.check();
  targets.check();
}

/** Draws the question. Returns the error with the input that it is about as `at`, or null. Until the options of a tab have come, its error is of no input. */
export function draw({ tab }, answer, error) {
  const at = error && built === tab ? { message: error.message, kind: error.kind, at: fieldOf(error, options) } : null;
  cluster.learn(answer);
  render(html`<${Question} tab=${tab} options=${built === tab ? options : new Map()} answer=${answer} error=${at} />`, $("#ask"));
  return at;
}
