/* Where the time of a step, or of a request, goes: one bar whose parts add up to it, and the schedule of a pipeline played out. */
import { ask } from "../api.js";
import { childPath, figure, number, offer, path } from "../card.js";
import { h, section, widthOf } from "../dom.js";
import { fixed, percent, said } from "../numbers.js";
import { chart, legend, s, title } from "../svg.js";
import { t, tr } from "../words.js";
import { later, settled, shown } from "./later.js";
import { drawPipeline } from "./pipeline.js";

const BASES = ["rule", "calibrated", "analytic", "traced", "measured"];
/* What a name's time is spent on -> its pattern. Links take the first of theirs that is free. */
const FILLS = [
  [/bubble|waiting|queueing/, "bubble"],
  [/interference/, "again"],
  [/optimizer|update/, "opt"],
  [/scheduler/, "other1"],
  [/overhead/, "other2"],
  [/fixed|engine|host|kernels|launch/, "other"],
  [/attention/, "bwd1"],
  [/GEMM|matrix|products|expert|answer/, "bwd"],
  [/prefill|prompt|run again/, "fwd1"],
  [/reads and writes|elementwise/, "fwd"],
];
const LINKS = ["comm2", "comm3", "comm4"];

export function draw(slot, answer, state) {
  const parts = answer ? partsOf(answer.document) : null;
  if (!parts) return answer ? unknown(slot, answer) : slot.replaceChildren();
  const { whole, where, served } = parts;
  const bubble = parts.list.find((part) => /bubble/.test(part.name));
  const heading = h("span", {}, served ? t("One request:") : t("One training step:"), " ", number(where, said(whole.value, "seconds")));
  const note = bubble ? t("Bubble {share} of the step", { share: percent(bubble.seconds / whole.value) }) : null;
  section(slot, heading, note, budget(slot, parts), h("p", { class: "note" }, served ? t("The parts follow one another and add up to the whole answer.") : t("Only communication that nothing hides is drawn: the parts add up to the step.")));
  if (!served) slot.append(...pipeline(slot, answer, state));
}

function unknown(slot, answer) {
  const served = answer.verb === "serve";
  section(slot, served ? t("One request") : t("One training step"), null, h("p", {}, t("unknown")), (answer.document.warnings ?? []).slice(0, 1).map((each) => h("p", { class: "note" }, tr(each))));
}

/* ---- the bar ---- */

function partsOf(document) {
  const found = [];
  if (document.step_time) {
    spread(document.step_time, "step_time", 1, found);
    return named(document.step_time, "step_time", found, false);
  }
  const { end_to_end_seconds: whole, tpot_seconds: token } = document.serving ?? {};
  if (!whole) return null;
  const start = path("serving", "end_to_end_seconds");
  whole.children.forEach((child, index) => {
    if (child.children.length) child.children.forEach((part, at) => found.push({ term: part, where: childPath(childPath(start, whole, index), child, at), times: 1, on: "" }));
    else if (token) spread(token, path("serving", "tpot_seconds"), child.value / token.value, found, "answer");
  });
  return named(whole, start, found, true);
}

/** The leaves below a term with how often each counts: sums are opened, and of products the part that has the unit of the whole. */
function spread(term, where, times, found, on = term.name) {
  const inside = term.combine === "product" ? term.children.filter((child) => child.unit === term.unit) : term.combine === "sum" ? term.children : [];
  if (!inside.length || (term.combine === "product" && inside.length > 1)) return void found.push({ term, where, times, on });
  const more = term.combine === "product" ? term.value / inside[0].value : 1;
  term.children.forEach((child, index) => {
    if (inside.includes(child)) spread(child, childPath(where, term, index), times * more, found, child.combine === "sum" ? child.name : on);
  });
}

/** Leaves of one name are one part, whose card says what it is made of. */
function named(whole, where, found, served) {
  const list = [];
  for (const leaf of found) {
    const name = leaf.term.name;
    const part = list.find((each) => each.name === name);
    if (part) part.leaves.push(leaf);
    else if (leaf.term.value) list.push({ name, leaves: [leaf] });
  }
  const links = [...LINKS];
  for (const part of list) {
    part.seconds = part.leaves.reduce((all, leaf) => all + leaf.times * leaf.term.value, 0);
    part.fill = FILLS.find(([words]) => words.test(part.name))?.[1] ?? links.shift() ?? LINKS.at(-1);
    part.where = part.leaves.length === 1 && part.leaves[0].times === 1 ? part.leaves[0].where : composed(part);
  }
  return { whole, where, served, list };
}

function composed(part) {
  const times = part.leaves[0].times;
  const terms = part.leaves.map((leaf) => leaf.term);
  const basis = BASES[Math.min(...terms.map((term) => BASES.indexOf(term.basis)))];
  const once = terms.length === 1 ? terms[0] : figure(t("in one micro-batch"), part.seconds / times, "seconds", { combine: "sum", basis, text: part.leaves.map((leaf) => leaf.on).join(" + "), children: terms });
  const count = figure(t("how many times"), times, "", {});
  offer(`part of the time: ${part.name}`, figure(part.name, part.seconds, "seconds", { combine: "product", basis, text: `${count.name} * ${once.name}`, children: [count, once] }));
  return `part of the time: ${part.name}`;
}

function budget(slot, { whole, list }) {
  const width = widthOf(slot, "timeline", 600);
  let at = 0;
  const bars = list.map((part) => {
    const wide = (part.seconds / whole.value) * width;
    const bar = s("rect", { class: "seg-part", "data-opens": part.where, x: at, y: 0, width: Math.max(wide - 1, 0.75), height: 22, fill: `url(#p-${part.fill})`, stroke: part.fill === "bubble" ? "var(--edge)" : null }, title(`${tr(part.name)} ${said(part.seconds, "seconds")}`));
    at += wide;
    return bar;
  });
  const told = list.map((part) => `${tr(part.name)} ${said(part.seconds, "seconds")}`).join(", ");
  return [chart(width, 22, told, bars), legend(list.map((part) => [part.fill, tr(part.name), " ", number(part.where, said(part.seconds, "seconds")), h("small", {}, percent(part.seconds / whole.value))]))];
}

/* ---- the pipeline ---- */

function pipeline(slot, answer, state) {
  const { question } = answer.document;
  if ((question.pipeline_parallel_size?.value ?? 1) < 2) return [];
  const asked = later("timeline", JSON.stringify(settled(answer)), answer.signal, (signal) => ask("timeline", settled(answer), signal), () => draw(slot, answer, state), 60);
  return [shown(asked, (made) => told(slot, made.document))];
}

function told(slot, drawn) {
  const lines = [];
  const left = drawn.num_microbatches - drawn.shown;
  if (left && drawn.gap !== null) lines.push(t("{shown} of {all} micro-batches drawn; {left} in the middle are left out, {time}.", { shown: fixed(drawn.shown), all: fixed(drawn.num_microbatches), left: fixed(left), time: said(drawn.gap, "seconds") }));
  else if (left) lines.push(t("{shown} of {all} micro-batches drawn; the bubble is drawn larger than it is.", { shown: fixed(drawn.shown), all: fixed(drawn.num_microbatches) }));
  else lines.push(t("All {all} micro-batches drawn.", { all: fixed(drawn.num_microbatches) }));
  if (drawn.gap !== null && Math.abs(drawn.played_seconds - drawn.step_seconds) > 0.002 * drawn.step_seconds) {
    lines.push(t("Played out, stages of uneven time end after {time}; the estimate takes a closed form.", { time: said(drawn.played_seconds, "seconds") }));
  }
  return [drawPipeline(widthOf(slot, "timeline", 600), drawn), h("p", { class: "note" }, t("{one}. {two}", { one: drawn.schedule, two: lines.reduce((first, second) => t("{first} {second}", { first, second })) }))];
}
