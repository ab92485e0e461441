/* All inputs: built once for each tab and language, then only brought up to date, so that nothing moves under a hand that types. */
import { $ } from "../dom.js";
import * as advanced from "./advanced.js";
import * as cluster from "./cluster.js";
import * as errors from "./errors.js";
import * as labels from "./labels.js";
import * as model from "./model.js";
import * as parallel from "./parallel.js";
import * as targets from "../targets.js";
import * as workload from "./workload.js";

let built = "";
let options = new Map();
const slot = (name) => $(`[data-input="${name}"]`);

/** The words changed: everything is built anew. */
export function forget() {
  built = "";
}

export function build(tab, rows) {
  if (built === tab) return;
  const first = built === "";
  built = tab;
  options = new Map(rows.map((each) => [each.name, each]));
  labels.learn(options.keys());
  if (first) {
    model.build(slot("model"));
    cluster.build(slot("cluster"));
  }
  workload.build(slot("workload"), tab, options);
  parallel.build(slot("parallel"), tab);
  advanced.choose(tab, options, [...workload.namesOf(tab), ...parallel.namesOf(tab)]);
  advanced.build(slot("advanced"));
}

/** Throws Refused where an input holds what cannot be asked. */
export function check() {
  cluster.check();
  targets.check();
}

/** Brings all inputs up to date. Returns the words of the one that an error is about. Until the options of a tab have come, the inputs are still
    those of the tab before. */
export function refresh({ tab }, answer, error) {
  if (built !== tab) return "";
  const document = answer?.document ?? null;
  model.refresh(answer);
  cluster.refresh(answer);
  workload.refresh(slot("workload"), tab, options, document);
  parallel.refresh(slot("parallel"), tab, document);
  advanced.refresh(slot("advanced"), document);
  const field = errors.show(error, options);
  return field ? errors.wordsOf(field) : "";
}
