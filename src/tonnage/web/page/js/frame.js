/* The frame: tabs, language, theme, undo, link; and the fixed words of index.html. */
import { $, $$, say } from "./dom.js";
import { canUndo, state, turn, undo } from "./state.js";
import { language, speak, t } from "./words.js";

const PHONE = "(max-width: 700px)";
const remembered = { get: (name) => attempt(() => localStorage.getItem(name)), set: (name, value) => attempt(() => localStorage.setItem(name, value)) };

/** A browser may forbid storage: then nothing is remembered. */
function attempt(use) {
  try {
    return use();
  } catch {
    return null;
  }
}

/* ---- theme: as the system has it, until somebody chooses ---- */
const dark = matchMedia("(prefers-color-scheme: dark)");
let theme = null;
export const isDark = () => (theme ? theme === "dark" : dark.matches);

function paint() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  $("#theme").textContent = isDark() ? t("Light") : t("Dark");
}

/* ---- words of the frame ---- */
function name() {
  for (const each of $$("[data-t]")) {
    each.dataset.t ||= each.textContent.trim();
    each.textContent = t(each.dataset.t);
  }
  for (const each of $$("[data-tlabel]")) {
    each.dataset.tlabel ||= each.getAttribute("aria-label");
    each.setAttribute("aria-label", t(each.dataset.tlabel));
  }
  for (const each of $$("[data-lang]")) each.setAttribute("aria-pressed", String(each.dataset.lang === language()));
}

export function draw(answer) {
  name();
  paint();
  for (const tab of $$("[role=tab]")) {
    const is = tab.dataset.tab === state.tab;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
  }
  $("#results").setAttribute("aria-labelledby", `tab-${state.tab}`);
  $("#undo").disabled = !canUndo();
  const said = answer ? [answer.document.question.model?.value, answer.document.question.on?.value].filter(Boolean).join(", ") : "";
  $("#inputsum").textContent = said;
  document.title = said ? `tonnage: ${said}` : "tonnage";
}

function fold() {
  const phone = matchMedia(PHONE).matches;
  $("#fold").open = !phone || $("#fold").dataset.user === "open" || !state.values.model;
}

/** Takes up what the reader chose before, and listens. `redraw` draws everything anew; `back` undoes. */
export async function begin(parts, redraw) {
  theme = parts.get("theme") ?? remembered.get("tonnage.theme");
  const wanted = parts.get("lang") ?? remembered.get("tonnage.lang") ?? (navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en");
  await speak(wanted).catch(() => null);
  dark.addEventListener("change", paint);
  matchMedia(PHONE).addEventListener("change", fold);
  $("#fold > summary").addEventListener("click", () => ($("#fold").dataset.user = $("#fold").open ? "" : "open"));
  $("#form").addEventListener("submit", (event) => event.preventDefault());
  $("#tabs").addEventListener("click", ({ target }) => target.closest("[data-tab]") && turn(target.closest("[data-tab]").dataset.tab));
  $("#tabs").addEventListener("keydown", arrows);
  $("#theme").addEventListener("click", () => {
    theme = isDark() ? "light" : "dark";
    remembered.set("tonnage.theme", theme);
    paint();
  });
  for (const each of $$("[data-lang]")) {
    each.addEventListener("click", async () => {
      await speak(each.dataset.lang);
      remembered.set("tonnage.lang", each.dataset.lang);
      say(""); // what was said last is in the other language
      redraw();
    });
  }
  $("#undo").addEventListener("click", undone);
  $("#share").addEventListener("click", share);
  document.addEventListener("keydown", keys);
  fold();
}

function undone() {
  if (undo()) say(t("Undone"));
}

/** Ctrl+Z undoes inputs everywhere: what is typed is an input of the question at once. The field gives up the focus, so that it shows the value before. */
function keys(event) {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.key.toLowerCase() !== "z") return;
  if (!canUndo()) return;
  event.preventDefault();
  document.activeElement?.blur?.();
  undone();
}

function arrows(event) {
  const all = $$("[role=tab]");
  const at = all.indexOf(event.target);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  const tab = all.at(to % all.length);
  turn(tab.dataset.tab);
  tab.focus();
}

async function share({ target }) {
  try {
    await navigator.clipboard.writeText(location.href);
    target.textContent = t("Copied");
    say(t("Copied"));
  } catch {
    // Without a secure address a page may not copy: the address bar has the link.
    target.textContent = t("See the address bar");
    say(t("See the address bar"));
  }
  setTimeout(() => (target.textContent = t("Copy link")), 1500);
}
