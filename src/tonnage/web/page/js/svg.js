/* Drawings by hand: elements, and the patterns by which components are told apart without colour. */
import { dress, h } from "./dom.js";

const NS = "http://www.w3.org/2000/svg";

/** One element of an SVG. */
export function s(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(NS, tag), attributes, children);
}

/** A whole drawing, `label` being what it says to those who do not see it. */
export function chart(width, height, label, ...body) {
  return s("svg", { class: "chart", role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, ...body);
}

/** Text in a drawing. `anchor`: start, middle or end. */
export function label(x, y, text, anchor = "start", kind = null) {
  return s("text", { x, y, "text-anchor": anchor, class: kind }, text);
}

/** A hover text. */
export const title = (text) => s("title", {}, text);

/** The little field of a legend or table row with a component's pattern. */
export function swatch(pattern) {
  return s("svg", { class: "sw", "aria-hidden": "true" }, s("rect", { width: "100%", height: "100%", fill: `url(#p-${pattern})` }));
}

/** A legend: pairs of a swatch (a pattern's name, or an element) and its words. */
export function legend(entries) {
  return h("div", { class: "legend" }, entries.map(([mark, ...words]) => h("span", {}, typeof mark === "string" ? swatch(mark) : mark, ...words)));
}

/** Round steps for an axis: about `count` of them up to `most`. */
export function ticks(most, count = 5) {
  const raw = most / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}

/* name: [colour, strokes, size, turn]. Strokes are in --hatch over the component's colour. */
const DOT = () => s("circle", { cx: 2.5, cy: 2.5, r: 1.1, class: "dot" });
const LINE = (d, width) => s("path", { d, "stroke-width": width });
const PATTERNS = {
  weights: ["c-weights", () => null, 8, 0],
  gradients: ["c-gradients", () => LINE("M0 0V20", 3), 7, 45],
  optimizer: ["c-optimizer", DOT, 6, 0],
  activations: ["c-activations", () => LINE("M0 .5H12", 1), 6, 0],
  temporary: ["c-temporary", () => LINE("M0 0H6M0 0V6", 2), 5, 45],
  comm: ["c-comm", () => LINE("M0 0V20", 3), 5, 0],
  overhead: ["c-overhead", () => null, 8, 0],
  kv: ["c-kv", () => LINE("M0 0V20", 3), 10, -45],
  fwd: ["t-fwd", () => null, 8, 0],
  fwd1: ["t-fwd", DOT, 5, 0],
  bwd: ["t-bwd", () => null, 8, 0],
  bwd1: ["t-bwd", DOT, 5, 0],
  wgt: ["t-bwd", () => LINE("M0 0V20", 3), 6, -45],
  comm2: ["t-comm", () => LINE("M0 0V20", 3), 6, 45],
  again: ["t-fwd", () => LINE("M0 0V20", 3), 6, 45],
  comm3: ["t-comm", () => LINE("M0 0V20", 2), 5, 0],
  comm4: ["t-comm", DOT, 5, 0],
  opt: ["t-opt", DOT, 6, 0],
  other: ["t-other", () => null, 8, 0],
};

/** Draws the patterns into the page's <defs>, once. */
export function drawPatterns(defs) {
  for (const [name, [colour, strokes, size, turn]] of Object.entries(PATTERNS)) {
    defs.append(
      pattern(name, size, turn, s("rect", { width: size, height: size, fill: `var(--${colour})` }), s("g", { class: "strokes" }, strokes())),
    );
  }
  defs.append(
    pattern("bubble", 6, 45, s("rect", { width: 6, height: 6, fill: "var(--bg)" }), s("path", { d: "M0 0V6", stroke: "var(--edge)", "stroke-width": 1.4 })),
    pattern("over", 7, 45, s("path", { d: "M0 0V7", stroke: "var(--bad)", "stroke-width": 4 })),
  );
}

function pattern(name, size, turn, ...body) {
  return s("pattern", { id: `p-${name}`, width: size, height: size, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` }, ...body);
}
