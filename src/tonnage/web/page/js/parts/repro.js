/* The same answer from the command line, and the settings that start it; those of a plan stand with the plans. */
import { exported, exports, launch } from "../api.js";
import { h, say } from "../dom.js";
import { t, tr } from "../words.js";
import { later, settled } from "./later.js";
import { found } from "./plan.js";
import "../print.js";

let again = () => {};
document.addEventListener("planned", () => again());

export function draw(slot, answer, state) {
  again = () => draw(slot, answer, state);
  const waits = state.tab !== "plan" && answer && !answer.settled;
  slot.classList.toggle("old", Boolean(waits));
  if (waits) return; // the command comes with the whole answer
  const plan = state.tab === "plan" ? found() : null;
  const command = state.tab === "plan" ? plan?.command : answer?.command;
  if (!command) return slot.replaceChildren();
  const id = "h-repro";
  slot.setAttribute("aria-labelledby", id);
  slot.replaceChildren(h("h2", { id }, t("Reproduce this page")), block(t("Command line"), broken(command)), ...(plan ? [] : [...launched(slot, answer, state), ...written(slot, answer, state)]));
}

let format = ""; // that was chosen last

/** The answer as a file of another tool: one of the formats that the server writes. */
function written(slot, answer, state) {
  const { verb } = answer;
  const { made: formats } = later("exports", verb, answer.signal, () => exports(verb), () => draw(slot, answer, state), 0);
  if (!formats?.length) return [];
  const choose = ({ target }) => {
    format = target.value;
    draw(slot, answer, state);
  };
  const select = h("select", { id: "export-format", "data-key": "export format", onchange: choose }, h("option", { value: "" }, t("choose a format")), formats.map((name) => h("option", { value: name, selected: name === format }, name)));
  const row = h("p", { class: "export" }, h("label", { for: "export-format" }, t("Write it for")), " ", select);
  if (!formats.includes(format)) return [row];
  const asked = settled(answer);
  const { made, error } = later("export", JSON.stringify([verb, format, asked]), answer.signal, (signal) => exported(verb, format, asked, signal), () => draw(slot, answer, state), 0);
  if (error) return [row, h("p", { class: "note" }, tr(error.message))];
  return made ? [row, block(format, made)] : [row];
}

function launched(slot, answer, state) {
  const asked = { ...settled(answer), as_is: true }; // what starts it has what was chosen, and nothing else is chosen
  const key = JSON.stringify([answer.verb, asked]);
  const { made, error } = later("launch", key, answer.signal, (signal) => launch(answer.verb, asked, signal), () => draw(slot, answer, state), 100);
  if (error) return [h("p", { class: "note" }, tr(error.message))];
  if (!made) return [];
  return [...(made.launch ? [block(t("Launch settings"), broken(made.launch))] : []), ...(made.notes ?? []).map((note) => h("p", { class: "note" }, tr(note)))];
}

/** A long command over several lines, an option or two on each. */
export function broken(command) {
  const words = command.split(" --");
  const lines = [words[0]];
  for (const word of words.slice(1)) {
    if (lines.length > 1 && lines.at(-1).length + word.length < 64) lines[lines.length - 1] += ` --${word}`;
    else lines.push(`--${word}`);
  }
  return lines.join(" \\\n  ");
}

export function block(name, text) {
  const button = h("button", { type: "button", class: "btn", "data-key": `copy ${name}`, "aria-label": `${t("Copy")}: ${name}`, onclick: () => copy(button, text) }, t("Copy"));
  return h("div", { class: "cmd" }, h("span", {}, name), button, h("pre", { tabindex: "0", role: "region", "aria-label": name }, text));
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // No clipboard for pages without a certificate: the text is selected, for the keys that copy.
    getSelection().selectAllChildren(button.parentNode.querySelector("pre"));
    return;
  }
  say(t("Copied"));
  button.textContent = t("Copied");
  setTimeout(() => (button.textContent = t("Copy")), 1500);
}
