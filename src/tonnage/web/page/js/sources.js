/* Where figures come from, as people read it: the five documents whose rules of thumb are worked here have no names but what they are about. */
import { t, tr } from "./words.js";

export const DOCUMENTS = { A: () => t("A: memory of a 6B model"), B: () => t("B: training GPT-3"), C: () => t("C: serving a 70B model"), D: () => t("D: size and hardware of a 7B model"), E: () => t("E: where memory goes") };
const OF_DOCUMENT = /^Document([A-E])(?:, (.*))?$/su;

/** "DocumentA, section on model weights" says nothing to a reader; `tonnage explain DocumentA` says where each is from. */
export function readable(source) {
  const parts = source.split("; ");
  if (!parts.some((part) => OF_DOCUMENT.test(part))) return tr(source);
  return parts.map(named).join("; ");
}

function named(part) {
  const [whole, letter, where] = OF_DOCUMENT.exec(part) ?? [];
  if (!whole) return tr(part);
  const about = DOCUMENTS[letter]();
  return where ? t("document “{about}”, {where}", { about, where: tr(where) }) : t("document “{about}”", { about });
}
