/* Numbers and what stands behind them. A number is a button that names a PATH; the path leads to a TERM of the answer (or of what a part
   offered), and the inspector shows that. */
import { h } from "./dom.js";
import { state } from "./state.js";

const BETWEEN = "\u203a";
let answered = {};
const offered = new Map();

/** A path: `path("ranks", 0, "optimizer")` is the optimizer of the first rank group; after a TERM come names of its children. */
export const path = (...pieces) => pieces.join(BETWEEN);

/** The document whose numbers are on the page. */
export function show(document) {
  answered = document ?? {};
}

/** Things that are not in the document, under a name of their own: `offer("model", document)` makes `path("model", "parameters")` lead. */
export function offer(root, thing) {
  offered.set(root, thing);
}

/** Takes back what was offered: a figure that is no longer on the page has no card. */
export function withdraw(root) {
  offered.delete(root);
}

/** A TERM made on the page, for figures that the answer states without one. */
export function figure(name, value, unit, more = {}) {
  return { name, value, unit, combine: "leaf", basis: "analytic", formula: null, text: "", source: "", inputs: {}, children: [], ...more };
}

/** A number that opens its card. `children`: what it shows. */
export function number(where, ...children) {
  return h("button", { type: "button", class: "n", "data-card": where, "aria-controls": "inspector", "aria-pressed": String(state.card === where) }, ...children);
}

/** The TERM at a path and the names on the way to it, or null. */
export function find(where) {
  const [root, ...rest] = where.split(BETWEEN);
  let at = offered.has(root) ? offered.get(root) : answered[root];
  const trail = isTerm(at) ? [] : [root];
  for (const piece of rest) {
    if (isTerm(at)) trail.push(at.name);
    at = step(at, piece);
    if (at === undefined || at === null) return null;
  }
  return isTerm(at) ? { term: at, trail, path: where } : null;
}

/** The path of a child, whose name may stand twice among its siblings. */
export function childPath(where, term, index) {
  const { name } = term.children[index];
  const before = term.children.slice(0, index).filter((each) => each.name === name).length;
  return path(where, before ? `${name}#${before + 1}` : name);
}

function step(at, piece) {
  if (at === undefined || at === null) return null;
  if (!isTerm(at)) return at[piece];
  const plain = at.children.find((child) => child.name === piece);
  if (plain) return plain;
  const [, name, count] = /^(.*)#(\d+)$/s.exec(piece) ?? [];
  return at.children.filter((child) => child.name === name)[count - 1];
}

export const isTerm = (thing) => Boolean(thing) && typeof thing === "object" && Array.isArray(thing.children) && typeof thing.value === "number";
