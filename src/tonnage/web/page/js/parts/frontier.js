/* Speed of one user against throughput of one accelerator, for every number of users: each mark is a plan. */
import { ask } from "../api.js";
import { figure, offer, path } from "../card.js";
import { $, $$, h, say, section } from "../dom.js";
import { fixed, said, significant } from "../numbers.js";
import { promptWords } from "../prompts.js";
import { change } from "../state.js";
import { axisTicks, chart, label, legend, placeLabels, s, title, widthOfText } from "../svg.js";
import { t } from "../words.js";
import { later, shown, without } from "./later.js";

const SHAPES = { 1: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", 2: "M-5 4.5H5L0 -5z", 4: "M-4.5 -4.5h9v9h-9z", 8: "M0 -5.6L5.6 0 0 5.6-5.6 0z" };
const MORE = "M-1.8 -5.5h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z"; // a cross
const SEARCHED = ["concurrency", "request_rate", "ttft", "tpot", "percentile", "simulate", "num_requests", "seed", "tensor_parallel_size", "trace", "prefill_replicas"];
const HIGH = 300;
const LEFT = 48;
const TOP = 26;
const BELOW = 40;

let chosen = null; // the point whose plan stands below the drawing

export function draw(slot, answer, state) {
  if (answer?.verb !== "serve") return slot.replaceChildren();
  const question = { ...without(answer.question, ...SEARCHED), frontier: true };
  const asked = later("frontier", JSON.stringify(question), answer.signal, (signal) => ask("serve", question, signal), () => draw(slot, answer, state), 300);
  section(slot, t("Frontier: speed per user against throughput per accelerator"), t("Each mark is a plan; the line joins those that no other plan beats"), shown(asked, (made) => picture(slot, made.document, answer)));
}

const shape = (size) => SHAPES[size] ?? MORE;
const many = (users) => (users === 1 ? t("1 user") : t("{n} users", { n: fixed(users) }));
const nameOf = (point) => t("TP {size}, {users}, {weights}", { size: point.tensor_parallel_size, users: many(point.concurrency), weights: point.weights });

function picture(slot, { points, question }, answer) {
  if (!points.length) return h("p", { class: "note" }, t("No number of users fits."));
  const width = slot.clientWidth || 600;
  const now = here(answer.document);
  const target = answer.document.question.tpot?.value ? 1 / answer.document.question.tpot.value : null;
  const most = (name, ...more) => 1.06 * Math.max(...points.map((point) => point[name]), ...more.filter(Boolean));
  const far = most("tokens_per_second_per_user", now?.x, target);
  const high = most("tokens_per_second_per_gpu", now?.y);
  const x = (value) => LEFT + (value / far) * (width - LEFT - 8);
  const y = (value) => TOP + (1 - value / high) * (HIGH - TOP - BELOW);
  const best = points.filter((point) => point.pareto).sort((a, b) => a.tokens_per_second_per_user - b.tokens_per_second_per_user);
  const marks = points.toSorted((a, b) => a.pareto - b.pareto || a.tokens_per_second_per_user - b.tokens_per_second_per_user).map((point) => mark(point, x, y));
  marks.at(-1).setAttribute("tabindex", "0");
  const made = chart(width, HIGH, t("Frontier: speed per user against throughput per accelerator"), axes(width, x, y, far, high),
    target ? wanted(target, x, width) : null,
    s("path", { class: "front", d: `M${best.map((point) => `${x(point.tokens_per_second_per_user)} ${y(point.tokens_per_second_per_gpu)}`).join("L")}` }),
    now ? standing(now, x, y, points) : null, marks, named({ best, now, points, target }, x, y, width));
  made.setAttribute("role", "group");
  made.addEventListener("keydown", move);
  return [made, key(points), h("div", { class: "chosen", "data-chosen": "" }, chosen ? details(chosen) : h("p", { class: "note" }, t("Arrow keys go from mark to mark; Enter opens one."))), h("p", { class: "note" }, t("TTFT: {prompts}.", { prompts: promptWords(question) }))];
}

/** The plan of the page, by its own answer. */
function here({ question, serving }) {
  const [x, y] = [serving?.tokens_per_second_per_user?.value, serving?.tokens_per_second_per_gpu?.value];
  return x && y ? { x, y, size: question.tensor_parallel_size?.value ?? 1, users: question.concurrency?.value } : null;
}

function axes(width, x, y, far, high) {
  const bottom = HIGH - BELOW;
  return [
    axisTicks(far).map((value) => [s("path", { class: "grid", d: `M${x(value)} ${TOP}V${bottom + 4}` }), label(x(value), bottom + 16, ticked(value), "middle", "tick")]),
    axisTicks(high).map((value) => [s("path", { class: "grid", d: `M${LEFT - 4} ${y(value)}H${width - 8}` }), label(LEFT - 6, y(value) + 4, ticked(value), "end", "tick")]),
    s("path", { class: "axis", d: `M${LEFT} ${bottom}H${width - 8}` }),
    label(width - 8, HIGH - 4, t("tokens/s of one user"), "end"),
    label(0, 12, t("tokens/s of one accelerator")),
  ];
}

/** A value of an axis, whole or with the half that its step has. */
const ticked = (value) => fixed(value, Number.isInteger(value) ? 0 : 1);

function wanted(target, x, width) {
  const [at, text] = [x(target), t("target ≥ {speed}", { speed: significant(target, 3) })];
  const right = at + 6 + widthOfText(text) <= width;
  const left = right ? at + 6 : at - 6 - widthOfText(text);
  const below = left < widthOfText(t("tokens/s of one accelerator")) + 8; // of the name of the axis, which stands there
  return [
    s("rect", { x: LEFT, y: TOP, width: Math.max(at - LEFT, 0), height: HIGH - TOP - BELOW, fill: "url(#p-bubble)", opacity: 0.35 }, title(t("slower than the target"))),
    s("path", { class: "usable", d: `M${at} ${TOP - 6}V${HIGH - BELOW}` }),
    label(right ? at + 6 : at - 6, below ? TOP + 10 : 18, text, right ? "start" : "end", "strong"),
  ];
}

function mark(point, x, y) {
  const name = nameOf(point);
  const told = `${name}: ${significant(point.tokens_per_second_per_user, 3)} ${t("tokens/s of one user")}, ${significant(point.tokens_per_second_per_gpu, 3)} ${t("tokens/s of one accelerator")}`;
  const root = `point: TP ${point.tensor_parallel_size}, ${point.concurrency}, ${point.weights}`;
  offer(root, { speed: figure(t("output tokens per second per user"), point.tokens_per_second_per_user, "tokens/s", { text: t("estimated as a whole for {machine}", { machine: name }) }) });
  return s("g", { role: "button", tabindex: "-1", "data-key": root, "data-card": path(root, "speed"), "aria-label": told, transform: `translate(${x(point.tokens_per_second_per_user)} ${y(point.tokens_per_second_per_gpu)})`, onfocus: () => choose(point), onclick: () => choose(point) },
    s("path", { class: `mark${point.pareto ? " best" : ""}`, d: shape(point.tensor_parallel_size) }), title(told));
}

/** Where the page stands: a ring around it, below the marks, which it covers none of. Its own mark where none is there. */
function standing({ x: speed, y: rate, size, users }, x, y, points) {
  const isMarked = points.some((point) => Math.hypot(x(point.tokens_per_second_per_user) - x(speed), y(point.tokens_per_second_per_gpu) - y(rate)) < 3);
  return s("g", { class: "standing", role: "img", "aria-label": hereWords(size, users), transform: `translate(${x(speed)} ${y(rate)})` }, isMarked ? null : s("path", { class: "mark here", d: shape(size) }), s("circle", { r: 10, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 }));
}

const hereWords = (size, users) => t("you are here: TP {size}, {users}", { size, users: many(users ?? 1) });

const AROUND = 7; // pixels of a mark around its middle
const SPARSE = 88; // pixels between plans that are named

/** The words of where the page stands, and of plans on the line as far as there is room for them. */
function named({ best, now, points, target }, x, y, width) {
  const at = (point) => ({ x: x(point.tokens_per_second_per_user), y: y(point.tokens_per_second_per_gpu) });
  const box = (each, around = AROUND) => ({ left: each.x - around, right: each.x + around, top: each.y - around, bottom: each.y + around });
  const own = now ? [{ x: x(now.x), y: y(now.y), kind: "strong", far: true, text: hereWords(now.size, now.users) }] : [];
  const others = best.map((point) => ({ ...at(point), kind: "named", text: t("TP {size}, {users}", { size: point.tensor_parallel_size, users: many(point.concurrency) }) }));
  const sparse = others.reduce((kept, each) => ([...kept, ...own].every((other) => Math.hypot(other.x - each.x, other.y - each.y) > SPARSE) ? [...kept, each] : kept), []);
  const line = target ? [{ left: x(target) - 3, right: x(target) + 3, top: 0, bottom: HIGH }] : [];
  const labels = [...own, ...sparse];
  const places = placeLabels(labels, [...points.map((point) => box(at(point))), ...own.map((each) => box(each, 11)), ...line], { left: LEFT, width, top: TOP + 14, bottom: HIGH - BELOW, away: 12 });
  if (now && !places[0]) Object.assign(places, [{ x: width, y: HIGH - BELOW - 4, anchor: "end" }]); // said wherever it stands
  return s("g", { class: "names", "aria-hidden": "true" }, places.map((place, index) => place && label(place.x, place.y, labels[index].text, place.anchor, labels[index].kind)));
}

function key(points) {
  const sizes = [...new Set(points.map((point) => point.tensor_parallel_size))].sort((a, b) => a - b);
  const small = (size, kind, line) => s("svg", { class: "sw", viewBox: "-9 -6 18 12", "aria-hidden": "true" }, line ? s("path", { class: "front", d: "M-9 0H9" }) : null, s("path", { class: `mark ${kind}`, d: shape(size) }));
  return legend([...sizes.map((size) => [small(size, ""), `TP ${size}`]), [small(4, "best", true), t("frontier")], [small(4, ""), t("beaten by another plan")]]);
}

/** What a mark stands for, and a way to take it over. */
function details(point) {
  const take = () => change({ tensor_parallel_size: point.tensor_parallel_size, concurrency: point.concurrency, weights: point.weights });
  return [
    h("p", {}, h("b", {}, nameOf(point)), ". ", t("First token {first}, each later one {later}.", { first: said(point.ttft_seconds, "seconds"), later: said(point.tpot_seconds, "seconds") })),
    h("button", { type: "button", class: "btn", "data-key": "use point", onclick: take }, t("Apply")),
  ];
}

function choose(point) {
  chosen = point;
  $("[data-chosen]").replaceChildren(...details(point));
}

/** The marks are one stop of the tab key; arrows go along them by speed. */
function move(event) {
  const marks = $$("g[role=button]", event.currentTarget);
  const at = marks.indexOf(event.target.closest("g[role=button]"));
  if (at < 0) return;
  const next = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: marks.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const to = marks[(next + marks.length) % marks.length];
  for (const each of marks) each.setAttribute("tabindex", each === to ? "0" : "-1");
  to.focus();
  say(to.getAttribute("aria-label"));
}
