/* Ranks in groups: stages that hold exactly the same are drawn once. */
import { t } from "./words.js";

/** [{term, index, stages, ranks}]: `index` into the document's ranks, `stages` the numbers of those that are alike, `ranks` how many in all. */
export function groupsOf(document) {
  const all = document.ranks;
  const each = Math.max(1, Math.round((document.question.accelerators?.value ?? all.length) / all.length));
  const groups = new Map();
  all.forEach((term, index) => {
    const key = JSON.stringify(term.children.map((child) => [child.name, child.value]));
    const found = groups.get(key);
    if (found) found.stages.push(index);
    else groups.set(key, { term, index, stages: [index], each });
  });
  return [...groups.values()].map((group) => ({ ...group, ranks: group.stages.length * each }));
}

export const fullestOf = (groups) => groups.reduce((a, b) => (b.term.value > a.term.value ? b : a));

/** The moment of a step at which the fullest rank is so full, or undefined. */
export const momentOf = ({ memory, phases }) => phases?.find((phase) => phase.value === memory.value)?.name;

/** "stage 0", "stages 1 to 14", "all ranks". */
export function groupName(group, alone = false) {
  if (alone) return group.ranks === 1 ? t("one GPU") : t("each GPU");
  const [first, ...rest] = group.stages;
  if (!rest.length) return t("stage {n}", { n: first });
  const run = rest.every((stage, i) => stage === first + i + 1);
  return run ? t("stages {from} to {to}", { from: first, to: rest.at(-1) }) : t("stages {list}", { list: group.stages.join(", ") });
}

/** What stands beside the heading: how the ranks are cut. */
export function groupNote(document, groups) {
  const n = document.question.accelerators?.value ?? 1;
  if (n === 1) return t("One GPU");
  const stages = document.ranks.length;
  if (stages > 1) return t("{stages} pipeline stages, {ranks} ranks each", { stages, ranks: groups[0].each });
  return t("{n} ranks hold the same", { n });
}
