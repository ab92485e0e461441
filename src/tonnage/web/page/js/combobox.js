/* A text input with a list of what it may mean: arrows move, Enter takes, Escape closes. The input keeps the focus; what is not in the list may be
   typed too. */
import { h } from "./dom.js";
import { t } from "./words.js";

const MOST = 8; // results that are shown

/** Entries whose name has all words of a text, those that begin with it first. `entries`: [{name, words}]; `words` are other names, in small letters. */
export function matching(entries, text) {
  const parts = text.toLowerCase().split(/[\s_/-]+/).filter(Boolean);
  if (!parts.length) return [];
  const whole = parts.join("-");
  const found = entries.filter((each) => parts.every((part) => each.words.includes(part)));
  const rank = ({ name }) => {
    const low = name.toLowerCase();
    if (low === whole) return 0;
    if (low.startsWith(whole)) return 1;
    if (low.startsWith(parts[0])) return 2;
    const starts = low.split(/[\s_/-]+/);
    return parts.every((part) => starts.some((each) => each.startsWith(part))) ? 3 : 4;
  };
  return found.map((each, i) => [rank(each), i, each]).sort(([one, i], [other, j]) => one - other || i - j).map(([, , each]) => each);
}

/** {field, list}: the input and its list. `find(text)`: [{name, about}]; `take(name)`: one was picked; `enter(text)`: Enter without a pick. */
export function combobox({ id, label, find, take, enter, ...attributes }) {
  let shown = [];
  let at = -1;
  const list = h("ul", { id: `${id}-list`, role: "listbox", class: "combolist", "aria-label": label, hidden: true });
  const field = h("input", {
    id, ...attributes, role: "combobox", autocomplete: "off", spellcheck: "false", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
    onkeydown: keys,
    onblur: close,
  });
  field.addEventListener("input", open);

  function open() {
    shown = find(field.value.trim());
    at = -1;
    list.replaceChildren(...shown.slice(0, MOST).map(option), ...(shown.length > MOST ? [h("li", { role: "presentation", class: "rest" }, t("{n} more: type on", { n: shown.length - MOST }))] : []));
    shown = shown.slice(0, MOST);
    show(shown.length > 0);
  }

  function show(is) {
    list.hidden = !is;
    field.setAttribute("aria-expanded", String(is));
    if (!is) field.removeAttribute("aria-activedescendant");
  }

  function option(each, i) {
    const made = h("li", { role: "option", id: `${id}-option-${i}`, "aria-selected": "false" }, h("b", {}, each.name), h("small", {}, each.about));
    made.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays in the input
    made.addEventListener("click", () => pick(each.name));
    return made;
  }

  function pick(name) {
    close();
    field.value = name;
    take(name);
  }

  function close() {
    shown = [];
    show(false);
  }

  function move(to) {
    if (list.hidden) open();
    if (list.hidden) return;
    at = (to + shown.length) % shown.length;
    [...list.querySelectorAll('[role="option"]')].forEach((each, i) => each.setAttribute("aria-selected", String(i === at)));
    const active = list.children[at];
    field.setAttribute("aria-activedescendant", active.id);
    active.scrollIntoView({ block: "nearest" });
  }

  function keys(event) {
    if (event.key === "ArrowDown") move(at + 1);
    else if (event.key === "ArrowUp") move(at < 0 ? -1 : at - 1);
    else if (event.key === "Enter" && shown[at]) pick(shown[at].name);
    else if (event.key === "Enter") {
      const first = shown[0]?.name;
      close();
      enter(field.value.trim(), first);
    } else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return { field, list };
}
