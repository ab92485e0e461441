/* Drawings by hand: elements, and the patterns by which components are told apart without colour. */
import { dress, h } from "./dom.js";
import { PATTERNS } from "./palette.js";

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

const STEPS = [1, 2, 2.5, 5];
/** Round steps for an axis on which values are read off: four to eight of them up to `most`, zero too. */
export function axisTicks(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = STEPS.map((each) => each * power).filter((each) => each <= (most / 4) * (1 + 1e-9)).at(-1);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

const LETTER = 6.6; // pixels of a letter of a drawing, on average
const WIDE = 12; // of a Chinese one
const TALL = 14; // pixels of a line of it

/** How wide a text of a drawing is, about. */
export const widthOfText = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e7f" ? WIDE : LETTER), 0);

const apart = (one, other) => one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;

/** Places for labels beside their points, so that none lies on another, on a mark, or outside the drawing: [{x, y, anchor, box}], null of one that
    has no room. `labels`: [{x, y, text, far}], those that matter most first, `far`: also further away; `taken`: boxes {left, right, top, bottom}
    where nothing may lie. */
export function placeLabels(labels, taken, { left: edge, width, top, bottom, away = 9 }) {
  const full = [...taken];
  return labels.map(({ x, y, text, far }) => {
    const long = widthOfText(text);
    const further = Array.from({ length: 16 }, (_, row) => [-away - row * TALL, away + 9 + row * TALL]).flat().flatMap((dy) => [[away, dy, "start"], [0, dy, "middle"], [width - x - 1, dy, "end"]]);
    const spots = [[away, 4, "start"], [-away, 4, "end"], [0, -away, "middle"], [0, away + 9, "middle"], [away, -away, "start"], [-away, -away, "end"], [away, away + 9, "start"], [-away, away + 9, "end"], ...(far ? further : [])];
    for (const [dx, dy, anchor] of spots) {
      const left = x + dx - { start: 0, middle: long / 2, end: long }[anchor];
      const box = { left, right: left + long, top: y + dy - TALL + 3, bottom: y + dy + 3 };
      if (box.left < edge || box.right > width || box.top < top || box.bottom > bottom || !full.every((each) => apart(box, each))) continue;
      full.push(box);
      return { x: x + dx, y: y + dy, anchor, box };
    }
    return null;
  });
}

/* What the marks of a pattern look like, in --hatch over its colour. */
const path = (d, width) => s("path", { d, "stroke-width": width });
const MARKS = {
  dots: () => s("circle", { cx: 2.5, cy: 2.5, r: 1.1, class: "dot" }),
  bar: () => path("M0 0V20", 3),
  thin: () => path("M0 0V20", 2),
  lines: () => path("M0 .5H12", 1),
  grid: () => path("M0 0H6M0 0V6", 2),
};

const HOLLOW = "reserved"; // memory that nothing needs: its marks on the ground of the page

/** Draws the patterns into the page's <defs>, once. */
export function drawPatterns(defs) {
  for (const [name, { colour, marks, size, turn }] of Object.entries(PATTERNS)) {
    const [ground, strokes] = name === HOLLOW ? ["var(--bg)", { stroke: `var(--${colour})` }] : [`var(--${colour})`, { class: "strokes" }];
    defs.append(pattern(name, size, turn, s("rect", { width: size, height: size, fill: ground }), s("g", strokes, MARKS[marks]?.())));
  }
  defs.append(
    pattern("bubble", 6, 45, s("rect", { width: 6, height: 6, fill: "var(--bg)" }), s("path", { d: "M0 0V6", stroke: "var(--edge)", "stroke-width": 1.4 })),
    pattern("over", 7, 45, s("path", { d: "M0 0V7", stroke: "var(--c-over)", "stroke-width": 4 })),
  );
}

function pattern(name, size, turn, ...body) {
  return s("pattern", { id: `p-${name}`, width: size, height: size, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` }, ...body);
}
