/* Where a figure comes from: a sum of one part of weight is that part, and so on down to what has a formula. */
import { childPath } from "./card.js";

const WEIGHTY = 0.995; // of a sum: what it has beside this part changes none of the digits that are shown
const JOINED = ["sum", "max"];

/** The TERM below this one that makes it, with its path; the TERM itself where several parts do. */
export function leafOf(term, path) {
  if (term.formula || !JOINED.includes(term.combine) || !term.value) return { term, path };
  const index = term.children.findIndex((child) => child.unit === term.unit && child.value >= WEIGHTY * term.value && child.value <= term.value / WEIGHTY);
  const others = term.children.filter((child, at) => at !== index && child.value > (1 - WEIGHTY) * term.value);
  return index < 0 || others.length ? { term, path } : leafOf(term.children[index], childPath(path, term, index));
}
