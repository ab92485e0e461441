/* Elements are built, never written as text: nothing that a person or a model's file says can become markup. */

/** One element. `attributes`: `class`, `data-...`, `on...` (a function); true writes an empty attribute, false, null and undefined leave it out. */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** What `h` and `s` share: the second makes elements of an SVG. */
export function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (query, within = document) => within.querySelector(query);
export const $$ = (query, within = document) => [...within.querySelectorAll(query)];

/** Puts nodes into a sentence: `fill("of {a} left", {a: button})` is ["of ", button, " left"]. */
export function fill(sentence, nodes) {
  return sentence.split(/(\{\w+\})/).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1];
    return name !== undefined && name in nodes ? nodes[name] : piece;
  });
}

/** The whole of a section: its heading, a note beside it, its body. The section is named by its heading. */
export function section(slot, title, note, ...body) {
  const id = `h-${slot.dataset.part}`;
  const owner = slot.closest("section, footer") ?? slot;
  owner.setAttribute("aria-labelledby", id);
  slot.replaceChildren(h("header", {}, h("h2", { id }, title), note ? h("p", { class: "note" }, note) : null), ...body.flat(Infinity).filter(Boolean));
}

/** A table or drawing that may be wider than its column: it scrolls by itself, and the keyboard reaches it. A group, no region: its section is
    one already, often of the same name. */
export function scroll(label, ...body) {
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, ...body);
}

/** A disc, triangle, square or rhombus: the shape that a verdict has beside its colour. `kind`: fits, tight, no, unknown. */
export function icon(kind) {
  const NS = "http://www.w3.org/2000/svg";
  const use = dress(document.createElementNS(NS, "use"), { href: `#i-${kind}` }, []);
  return dress(document.createElementNS(NS, "svg"), { class: `g ${kind}`, "aria-hidden": "true" }, [use]);
}

/** Draws, and gives the focus back to what had it: the same number, input or button by its key, though it is a new element. */
export function keepingFocus(draw) {
  const had = document.activeElement;
  const key = had && had !== document.body ? keyOf(had) : null;
  draw();
  if (key && !document.contains(had)) $(key)?.focus({ preventScroll: true });
}

function keyOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  if (element.type === "radio") return `[name="${CSS.escape(element.name)}"][value="${CSS.escape(element.value)}"]`;
  for (const name of ["data-card", "data-key", "name"]) {
    const value = element.getAttribute(name);
    if (value) return `[${name}="${CSS.escape(value)}"]`;
  }
  return null;
}

/** Tells a screen reader what changed. */
export function say(text) {
  const status = $("#say");
  if (status.textContent !== text) status.textContent = text;
}

/* Asking for a width makes the browser lay out the page, which takes longer than drawing a part: asked once until the column changes. */
const widths = new Map();
export const forgetWidths = () => widths.clear();

/** The width of an element in pixels, kept under a name; of one that is hidden, `otherwise`. */
export function widthOf(element, name, otherwise) {
  if (!widths.get(name)) widths.set(name, element.clientWidth);
  return widths.get(name) || otherwise;
}
