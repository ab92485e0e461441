/* The same answer from the command line, and the settings that start the plan. */
import { launch } from "../api.js";
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
  slot.replaceChildren(h("h2", { id }, t("Reproduce this page")), block(t("Command line"), broken(command)), ...(plan ? planned(plan) : launched(slot, answer, state)));
}

/** Parallel sizes of the best plan, all of them: launch settings leave out those that are 1. */
function sizes(plan) {
  const of = plan.options ?? plan;
  const named = [["TP", "tensor"], ["PP", "pipeline"], ["CP", "context"], ["EP", "expert"], ["DP", "data"]].map(([letters, name]) => [letters, of[`${name}_parallel_size`] ?? (plan.options ? 1 : undefined)]);
  const text = [...named, ["DP", plan.options ? undefined : plan.replicas]].filter(([, size]) => size).map(([letters, size]) => `${letters}\u00a0${size}`).join(" · ");
  return text ? [h("p", { class: "note" }, t("Parallel sizes of the best plan: {sizes}", { sizes: text }))] : [];
}

function planned({ document }) {
  const best = document.plans?.[0];
  const { launch: settings = [], launch_lacks: lacks = [] } = best ?? {};
  const shown = [...(best ? sizes(best) : []), ...settingsOf(settings)];
  if (!lacks.length) return shown;
  const note = settings.length ? `not said by these settings: ${lacks.join(", ")}.` : `nothing is written down here of ${lacks[0]}.`;
  return [...shown, h("p", { class: "note" }, tr(note))];
}

const settingsOf = (settings) => (settings.length ? [block(t("Launch settings of the best plan"), broken(settings.join(" ")))] : []);

function launched(slot, answer, state) {
  const asked = settled(answer); // what starts it has what was chosen
  const key = JSON.stringify([answer.verb, asked]);
  const { made, error } = later("launch", key, answer.signal, (signal) => launch(answer.verb, asked, signal), () => draw(slot, answer, state), 100);
  if (error) return [h("p", { class: "note" }, tr(error.message))];
  if (!made) return [];
  return [...(made.launch ? [block(t("Launch settings"), broken(made.launch))] : []), ...(made.notes ?? []).map((note) => h("p", { class: "note" }, tr(note)))];
}

/** A long command over several lines, an option or two on each. */
function broken(command) {
  const words = command.split(" --");
  const lines = [words[0]];
  for (const word of words.slice(1)) {
    if (lines.length > 1 && lines.at(-1).length + word.length < 64) lines[lines.length - 1] += ` --${word}`;
    else lines.push(`--${word}`);
  }
  return lines.join(" \\\n  ");
}

function block(name, text) {
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
