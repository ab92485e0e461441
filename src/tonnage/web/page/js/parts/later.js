/* What a part asks beside the main answer: after it, given up when a newer input comes. Until the new one is there, the old one stays on
   the page, dimmed. */
import { h, keepingFocus } from "../dom.js";
import { drawCard } from "../inspector.js";
import { inLabels } from "../inputs/labels.js";
import { language, t, tr } from "../words.js";

const PAUSE = 250; // milliseconds: who types on does not wait for it
const kept = new Map();

/** {made, error, current} of a part's question. `question`: what it depends on; `asking(signal)` is called once for each, and `drawn` when it
    has come. `signal`: of the main answer; null where there is none, and then a new one gives the old question up. `pause`: how long a newer input
    may still come. */
export function later(part, question, signal, asking, drawn, pause = PAUSE) {
  const key = `${language()} ${question}`; // an answer has the words of its language
  if (!kept.has(part)) kept.set(part, { key: null, made: null, error: null, wanted: null, stopped: null });
  const box = kept.get(part);
  if (key !== box.wanted) {
    box.wanted = key;
    box.stopped = null; // was said of another question
    box.own?.abort();
    box.own = new AbortController();
    run(box, key, signal ?? box.own.signal, asking, pause).then((news) => news && (keepingFocus(drawn), drawCard()));
  }
  return { made: box.made, error: box.key === key ? box.error : null, current: box.key === key, stopped: box.stopped === key };
}

/** Gives up what a part asks, and asks nothing until its key is another one; or, with false, lets it ask again. */
export function stop(part, stopping = true) {
  const box = kept.get(part);
  if (!box) return;
  if (stopping) {
    box.stopped = box.wanted;
    box.own?.abort();
  } else {
    box.stopped = box.wanted = null;
  }
}

async function run(box, key, signal, asking, pause) {
  try {
    await waited(pause, signal);
    const made = await asking(signal);
    if (box.wanted !== key) return false;
    Object.assign(box, { key, made, error: null });
  } catch (error) {
    if (box.wanted !== key) return false;
    if (error.name === "AbortError") {
      if (box.stopped !== key) box.wanted = null; // asked again when it is drawn again
      return false;
    }
    Object.assign(box, { key, made: null, error });
  }
  return true;
}

function waited(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new DOMException("a newer input came", "AbortError"));
    if (signal.aborted) return gone();
    const clock = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(clock), gone()), { once: true });
  });
}

/** What `later` gave as an element: the drawing of what was made, dimmed while a newer one is on its way; the words of a refusal. */
export function shown({ made, error, current }, body) {
  if (error) return h("p", { class: "note" }, inLabels(tr(error.message)));
  if (!made) return h("p", { class: "note waiting", "aria-busy": "true" }, t("Working it out…"));
  return h("div", { class: current ? null : "old", "aria-busy": current ? null : "true" }, body(made));
}

/** The question of an answer without what another question of the same plan must not say. */
export function without(question, ...names) {
  return Object.fromEntries(Object.entries(question).filter(([name]) => !names.includes(name)));
}

/** The question of an answer with what was chosen for it: searches choose nothing themselves, and know no option that says so. */
export const settled = ({ question, document }) => ({ ...without(question, "as_is"), ...(document.chosen?.change ?? {}) });
