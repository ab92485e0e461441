/* A text input with a list of what it may mean: arrows move, Enter takes. The input keeps the focus; what is not in the list may be typed too. */
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { t } from "../words.js";

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

/** The box and its list. `value`: what stands, and `find(text)`: [{name, cells, here}] of a text; of what stands, what else there is. `take(name)`: one was
    picked; `enter(text, first)`: Enter without a pick; `typed(text)`: at each letter; `left(text)`: the box was left with another text. */
export function Combobox({ id, label, value, find, take, enter, typed, left, wrong, described, placeholder }) {
  const [text, setText] = useState(null); // null: as it stands
  const [at, setAt] = useState(-1);
  const box = useRef(null);
  const list = useRef(null);
  const gone = useRef(false); // what was typed is to be forgotten
  const shown = text ?? value;
  const found = find(text ?? "", text === null);
  const options = found.slice(0, MOST);
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);

  const begin = () => {
    gone.current = false;
    box.current.select();
  };
  const input = ({ target }) => {
    setText(target.value);
    setAt(-1);
    typed?.(target.value.trim());
  };
  const pick = (name) => {
    gone.current = true;
    setText(null);
    take(name);
  };
  const leave = () => {
    if (text !== null && !gone.current) left(text.trim());
    gone.current = false;
    setText(null);
    setAt(-1);
  };
  const keys = (event) => {
    if (event.key === "ArrowDown" && options.length) setAt((at + 1) % options.length);
    else if (event.key === "ArrowUp" && options.length) setAt((Math.max(at, 0) - 1 + options.length) % options.length);
    else if (event.key === "Enter" && options[at]) pick(options[at].name);
    else if (event.key === "Enter") {
      gone.current = true;
      const now = text === null ? null : text.trim();
      setText(null);
      enter(now, options[0]?.name);
    } else {
      if (event.key === "Escape") gone.current = true;
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const active = options[at] ? `${id}-option-${at}` : null;
  return html`<input id=${id} name=${id} role="combobox" ref=${box} value=${shown} placeholder=${placeholder} autocomplete="off" spellcheck=${false} aria-autocomplete="list" aria-expanded=${String(options.length > 0)} aria-controls=${`${id}-list`}
      aria-activedescendant=${active} aria-label=${label} aria-describedby=${described} aria-invalid=${wrong ? "true" : null} onFocus=${begin} onInput=${input} onKeyDown=${keys} onBlur=${leave} />
    <ul id=${`${id}-list`} role="listbox" class="combolist" aria-label=${label} ref=${list} hidden=${!options.length}>
      ${options.map((each, i) => html`<li role="option" id=${`${id}-option-${i}`} key=${each.name} aria-selected=${String(i === at)} data-here=${each.here ? "" : null} onMouseDown=${(event) => event.preventDefault()} onClick=${() => pick(each.name)}><b>${each.name}</b>${each.cells.map((cell) => html`<small>${cell}</small>`)}</li>`)}
      ${found.length > MOST ? html`<li role="presentation" class="rest" key="rest">${t("{n} more: type on", { n: found.length - MOST })}</li>` : null}
    </ul>`;
}
