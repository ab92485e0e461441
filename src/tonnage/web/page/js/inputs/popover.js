/* The inputs behind a slot, below it; on a phone a sheet at the bottom. Escape and Enter return to the slot, Tab goes on from it. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { $$ } from "../dom.js";

const EDGES = [8, 32]; // px between a popover and the edge of a narrow and of a wide column
const WIDE = 760; // px
const REACHED = "input:not([disabled]):not([tabindex='-1']), select, textarea, button:not([disabled]):not([tabindex='-1'])";

/** `slot`: the button that opened it; `close(back)`: with the focus back on the slot, or left where it is. */
export function Popover({ slot, label, wide, close, children }) {
  const box = useRef(null);
  const [place, setPlace] = useState({});

  useLayoutEffect(() => {
    const put = () => {
      const column = slot.offsetParent;
      const edge = EDGES[Number(column.clientWidth > WIDE)];
      const most = column.clientWidth - box.current.offsetWidth - edge;
      setPlace({ left: `${Math.max(edge, Math.min(slot.offsetLeft, most))}px`, top: `${slot.offsetTop + slot.offsetHeight + 6}px` });
    };
    put();
    addEventListener("resize", put);
    return () => removeEventListener("resize", put);
  }, [slot]);

  useEffect(() => {
    const [first] = $$(REACHED, box.current);
    first?.focus();
    first?.select?.(); // what is typed takes the place of what stands
    const away = ({ target }) => box.current && !box.current.contains(target) && !slot.contains(target) && close(false);
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [slot]);

  const keys = (event) => {
    if (event.key === "Escape" || (event.key === "Enter" && event.target.matches("input, select"))) {
      event.preventDefault();
      event.stopPropagation();
      return close(true);
    }
    if (event.key !== "Tab") return;
    const all = $$(REACHED, box.current).filter((each) => each.checkVisibility());
    if (event.target !== (event.shiftKey ? all[0] : all.at(-1))) return;
    if (event.shiftKey) event.preventDefault();
    close(true);
  };
  return html`<div class=${wide ? "pop wide" : "pop"} role="dialog" aria-label=${label} ref=${box} style=${place} onKeyDown=${keys}>${children}</div>`;
}
