/* What it costs: the price that was taken, what follows from it, and the energy. */
import { number, path } from "../card.js";
import { h, section } from "../dom.js";
import { compact, compactUsd, joules, usd } from "../numbers.js";
import { t, tr } from "../words.js";

export function draw(slot, answer) {
  if (!answer) return slot.replaceChildren();
  const { document } = answer;
  const rows = (answer.verb === "serve" ? served(document) : trained(document)).filter(([, shown]) => shown !== null);
  const { price } = document.question;
  section(slot, t("Cost"), price ? tr(String(price.value)) : null,
    rows.length ? h("dl", { class: "sums" }, rows.map(([name, shown]) => h("div", {}, h("dt", {}, name), h("dd", {}, shown)))) : h("p", {}, t("unknown")),
    price?.why ? h("p", { class: "note source" }, tr(price.why)) : null);
}

const money = (term, where, write = usd) => (term ? number(where, write(term.value)) : null);
function trained({ cost, run, energy }) {
  return [
    [run?.seconds ? t("cost of the run") : t("cost of a step"), money(cost, "cost", compactUsd)],
    [t("GPU-hours"), run?.accelerator_hours ? number(path("run", "accelerator_hours"), compact(run.accelerator_hours.value)) : null],
    [t("USD per 1M tokens"), cost && run?.seconds && run.tokens ? usd((cost.value / run.tokens.value) * 1e6) : null],
    [run?.seconds ? t("energy") : t("energy of a step"), energy ? number("energy", joules(energy.value).join("\u00a0")) : null],
  ];
}

function served({ cost, serving, energy }) {
  const of = serving ?? {};
  const at = (name) => money(of[name], path("serving", name));
  const joulesOf = (term, where) => (term ? number(where, joules(term.value).join("\u00a0")) : null);
  return [
    [t("USD per hour"), money(cost, "cost")],
    [t("USD per 1M input and output tokens"), at("cost_per_million_tokens")],
    [t("USD per 1M prompt tokens"), at("cost_per_million_input_tokens")],
    [t("USD per 1M answer tokens"), at("cost_per_million_output_tokens")],
    [t("USD per 1M tokens of one lone user"), at("cost_per_million_tokens_alone")],
    [t("energy per 1M tokens"), joulesOf(of.energy_per_million_tokens, path("serving", "energy_per_million_tokens")) ?? joulesOf(energy, "energy")],
  ];
}
