/* What an input is called on the page, and messages of the command line in those words. */
import { $ } from "../dom.js";
import { t } from "../words.js";

// A flag, a name with an underscore; a name of one word where the message begins with it.
const OPTION = /(?<![\w-])(?:--([a-z][a-z0-9-]*)|([a-z]+(?:_[a-z0-9]+)+|^[a-z]+(?= ?(?:must be|必须|应))))(?![\w-])/g;
const APART = /(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])/g; // blanks that Chinese has not
let known = new Set(); // options of the verb

export function learn(names) {
  known = new Set(names);
}

/** The label of an option's input; null where the option is shown by its own name, or not at all. */
export function labelOf(option) {
  if (option === "model") return t("Model");
  if (option === "on") return t("Cluster");
  const label = $(`#in-${CSS.escape(option)}, #${CSS.escape(option)}`)?.labels?.[0];
  return !label || $("code", label) ? null : ($("span", label) ?? label).textContent;
}

/** A message with its options named as their inputs are; one that the page does not have stays a flag. */
export function inLabels(message, naming = labelOf) {
  const said = message.replace(OPTION, (whole, flag, plain) => {
    const option = (flag ?? plain).replaceAll("-", "_");
    return naming(option) ?? (known.has(option) ? option : whole);
  });
  return said === message ? message : said.replace(APART, "");
}
