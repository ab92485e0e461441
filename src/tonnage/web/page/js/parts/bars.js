/* Memory of each group of ranks as one bar: its components, the usable and capacity lines, the error band, and red hatch beyond what is usable.
   Where all ranks are alike the bar below the verdict says it all. */
import { number, path } from "../card.js";
import { h, section, widthOf } from "../dom.js";
import { segmentsOf } from "../marks.js";
import { capacityOf } from "../machine.js";
import { fixed, gib, powers } from "../numbers.js";
import { fullestOf, groupName, groupNote, groupsOf } from "../ranks.js";
import { chart, label, legend, s, ticks, title } from "../svg.js";
import { t } from "../words.js";

const GIB = 2 ** 30;
const [ROW, TOP, FOOT] = [34, 22, 22];

export function draw(slot, answer) {
  if (!answer) return slot.replaceChildren();
  const { document } = answer;
  const groups = groupsOf(document);
  const plot = h("div", { class: "plot" });
  if (groups.length === 1) return section(slot, t("Memory per GPU"), groupNote(document, groups));
  section(slot, t("Memory per GPU"), groupNote(document, groups), h("div", { class: "bars" }, names(groups), plot, totals(groups)), key(document, groups));
  plot.append(drawing(document, groups, widthOf(plot, "bars", 320)));
}

function names(groups) {
  return h("div", { class: "lab" }, groups.map((group) => h("div", {}, h("span", {}, groupName(group, groups.length === 1)), group.ranks > 1 ? h("small", {}, `× ${group.ranks}`) : null)));
}

function totals(groups) {
  return h("div", { class: "val" }, groups.map((group) => h("div", {}, number(path("ranks", group.index), gib(group.term.value)), h("span", { class: "unit" }, " GiB"))));
}

/** The bars of the groups. */
export function drawing(document, groups, width) {
  const { usable_bytes: usable, band, needed_bytes: needed } = document.verdict;
  const capacity = capacityOf(document);
  const most = Math.max(...groups.map((group) => group.term.value), usable ?? 0, capacity ?? 0, band?.[1] ?? 0) * 1.04;
  const x = (bytes) => (bytes / most) * width;
  const bottom = TOP + groups.length * ROW;
  // Of the other groups no band is stated: theirs is as wide as that of the fullest, as a part of it.
  const spread = band && needed ? band.map((edge) => edge / needed) : null;
  const parts = groups.flatMap((group, i) => bar(group, TOP + i * ROW + 6, x, usable, spread));
  const said = groups.map((group, i) => `${groupName(group, groups.length === 1)}: ${gib(group.term.value)} GiB${i === groups.length - 1 ? "" : "; "}`).join("");
  return chart(width, bottom + FOOT, usable ? `${said}; ${t("usable")} ${gib(usable)} GiB` : said, grid(most, x, bottom), parts, lines(usable, capacity, x, bottom, width));
}

function grid(most, x, bottom) {
  return ticks(most / GIB).map((value) => [
    s("path", { class: "grid", d: `M${x(value * GIB)} ${TOP}V${bottom}` }),
    label(x(value * GIB), bottom + 16, value >= 1e6 ? powers(value) : value ? fixed(value, value % 1 ? 1 : 0) : "0 GiB", value ? "middle" : "start"),
  ]);
}

function bar(group, y, x, usable, spread) {
  const height = ROW - 12;
  const total = group.term.value;
  let at = 0;
  const drawn = segmentsOf(group.term, path("ranks", group.index)).map(({ term, value, label: words, pattern, where }) => {
    const from = x(at);
    at += value;
    const width = x(at) - from;
    if (width < 0.25) return null;
    // One pixel of background keeps neighbours apart.
    const shape = { x: from, y, width: Math.max(width - 1, 0.75), height, fill: `url(#p-${pattern})`, stroke: pattern === "reserved" ? "var(--c-reserved)" : null };
    return s("rect", { class: "seg-part", "data-part-name": term.name, "data-opens": where, ...shape }, title(`${words} ${gib(value, 2)} GiB`));
  });
  return [drawn, usable && total > usable ? beyond(x(usable), x(total), y, height, total - usable) : null, spread && bracket(x(total * spread[0]), x(total * spread[1]), y, height)];
}

function beyond(from, to, y, height, bytes) {
  return [
    s("rect", { class: "cleared", x: from, y, width: to - from, height }),
    s("rect", { class: "over", x: from, y, width: to - from, height }, title(`${t("over the usable line")}: ${gib(bytes)} GiB`)),
  ];
}

function bracket(from, to, y, height) {
  const middle = y + height / 2;
  return [s("rect", { class: "bandbox", x: from, y: y - 3, width: to - from, height: height + 6 }), s("path", { class: "band", d: `M${from} ${middle - 4}v8M${from} ${middle}H${to}m0 -4v8` })];
}

function lines(usable, capacity, x, bottom, width) {
  const marks = [s("path", { class: "axis", d: `M0 ${bottom}H${width}` })];
  if (capacity) marks.push(s("path", { class: "cap", d: `M${x(capacity)} ${TOP - 4}V${bottom}` }));
  if (!usable) return marks;
  marks.push(s("path", { class: "usable", d: `M${x(usable)} ${TOP - 4}V${bottom}` }));
  const words = `${t("usable")} ${gib(usable)}`;
  const more = capacity ? `${t("capacity")} ${gib(capacity)}` : "";
  // Where there is no room right of the line, both stand left of it.
  const room = capacity && width - x(capacity) > more.length * 7.5;
  // Where nearly all is above the line, both stand right of it.
  const first = x(usable) < words.length * 7.5 + 5;
  const place = first ? { x: x(usable) + 5, "text-anchor": "start" } : { x: room ? x(usable) - 5 : width, "text-anchor": "end" };
  const apart = room && !first;
  const text = s("text", { ...place, y: 12 }, s("tspan", { class: "strong" }, words), apart || !more ? null : `  ${more}`);
  return [...marks, text, apart ? label(x(capacity) + 5, 12, more) : null];
}

/** What the patterns mean; with `figures` also how much of each there is on the fullest rank. */
export function key(document, groups, figures = false) {
  const full = fullestOf(groups);
  const much = ({ where, value }) => (figures ? [" ", number(where, gib(value))] : []);
  const all = groups.flatMap((group) => group.term.children);
  const parts = segmentsOf(full.term, path("ranks", full.index)).filter(({ term, value }) => value || all.some((child) => child.name === term.name && child.value));
  const ends = (low, high) => [h("span", { class: "nw" }, number(path("page", "low"), gib(low)), "–", number(path("page", "high"), gib(high)))];
  const band = s("svg", { class: "sw chart", "aria-hidden": "true" }, s("rect", { class: "bandbox", width: 18, height: 12 }), s("path", { class: "band", d: "M1 2v8M1 6H17m0 -4v8" }));
  const over = s("svg", { class: "sw", "aria-hidden": "true" }, s("rect", { class: "over", x: 1, y: 1, width: 16, height: 10 }));
  const beyondUsable = groups.some((group) => group.term.value > (document.verdict.usable_bytes ?? Infinity));
  return legend([
    ...parts.map((part) => [part.pattern, part.label, ...much(part)]),
    ...(document.verdict.band ? [[band, t("error band"), ...(figures ? ends(...document.verdict.band) : [])]] : []),
    ...(beyondUsable ? [[over, t("over the usable line")]] : []),
  ]);
}
