/* A step through the stages of a pipeline: a box is the work of a stage on a micro-batch; where the row shows through, the stage waits. */
import { h } from "../dom.js";
import { said } from "../numbers.js";
import { chart, label, legend, s, title } from "../svg.js";
import { t, tr } from "../words.js";

const ROWS = 16; // stages that are drawn: the first and the last of a longer pipeline
const HIGH = 26;
const FILL = { forward: "fwd", backward: "bwd", "run again": "again", "gradients of inputs": "bwd", "gradients of weights": "wgt" };
const PALE = { fwd: "fwd1", bwd: "bwd1" };

export function drawPipeline(width, drawn) {
  const { stages, boxes, cut, gap } = drawn;
  const rows = [...Array(stages).keys()].filter((rank) => stages <= ROWS || rank < ROWS / 2 || rank >= stages - ROWS / 2);
  const line = new Map(rows.map((rank, index) => [rank, index]));
  const left = width < 420 ? 24 : 64;
  const onPaper = (time) => (gap && time >= cut + gap - 1e-12 ? time - gap : time);
  const unit = (width - left - 4) / onPaper(drawn.played_seconds);
  const x = (time) => left + onPaper(time) * unit;
  const ends = boxes.filter((box) => box.microbatch < 0).map((box) => box.start);
  const end = x(ends.length ? Math.min(...ends) : drawn.played_seconds);
  const body = rows.map((rank, index) => [
    label(0, index * HIGH + 25, width < 420 ? rank : t("stage {number}", { number: rank })),
    s("rect", { x: left, y: index * HIGH + 10, width: Math.max(end - left, 0), height: HIGH - 4, fill: "url(#p-bubble)" }),
  ]);
  const fills = new Set();
  const kinds = new Set(boxes.map((box) => box.kind));
  for (const box of boxes) {
    if (!line.has(box.stage)) continue;
    const fill = fillOf(box);
    fills.add(fill);
    body.push(drawBox(box, fill, drawn.chunks, x(box.start), x(box.start + box.seconds), line.get(box.stage) * HIGH + 10));
  }
  if (gap) body.push(s("path", { class: "cutline", d: `M${x(cut)} 4V${rows.length * HIGH + 12}` }, title(t("{time} left out here", { time: said(gap, "seconds") }))));
  const told = t("The pipeline's schedule: {stages} stages, a step of {time}", { stages, time: said(drawn.played_seconds, "seconds") });
  return [chart(width, rows.length * HIGH + 14, told, body), legend(entries(fills, kinds, gap))];
}

function fillOf(box) {
  if (box.microbatch < 0) return /optimizer/.test(box.kind) ? "opt" : /fixed/.test(box.kind) ? "other" : "comm2";
  const fill = FILL[box.kind] ?? "comm2";
  return box.chunk % 2 ? (PALE[fill] ?? fill) : fill;
}

function drawBox(box, fill, chunks, from, to, y) {
  const wide = Math.max(to - from - 0.75, 0.5);
  const part = chunks > 1 ? t(", model chunk {number}", { number: box.chunk + 1 }) : "";
  const which = box.microbatch < 0 ? "" : t(", micro-batch {number}", { number: box.microbatch + 1 }) + part;
  const made = [s("rect", { x: from, y, width: wide, height: HIGH - 4, fill: `url(#p-${fill})` }, title(`${tr(box.kind)}${which}: ${said(box.seconds, "seconds")}`))];
  const text = String(box.microbatch + 1);
  if (box.microbatch >= 0 && (fill === "fwd" || fill === "bwd") && wide > 4 + 6 * text.length) {
    made.push(s("text", { x: from + wide / 2, y: y + 15, "text-anchor": "middle", class: `boxed ${fill}` }, text));
  }
  return made;
}

function entries(fills, kinds, gap) {
  const whole = kinds.has("backward");
  const split = kinds.has("gradients of inputs");
  const words = {
    fwd: t("forward"), bwd: !split ? t("backward") : whole ? t("backward (short: gradients of inputs alone)") : t("gradients of inputs"),
    fwd1: t("forward, second model chunk"), bwd1: whole ? t("backward, second model chunk") : t("gradients of inputs, second model chunk"),
    wgt: t("gradients of weights"), again: t("run again"), comm2: t("communication"), opt: t("optimizer"), other: t("fixed"),
  };
  const made = Object.keys(words).filter((fill) => fills.has(fill)).map((fill) => [fill, words[fill]]);
  made.push(["bubble", t("waiting (bubble)")]);
  if (gap) made.push([h("span", { class: "cutmark", "aria-hidden": "true" }), t("left out here")]);
  return made;
}
