/* The frame: sections, language, theme, undo, link; and the fixed words of index.html. */
import { hush } from "./announce.js";
import { $, $$, say } from "./dom.js";
import { isPrinting } from "./print.js";
import { canUndo, state, turn, undo } from "./state.js";
import { language, speak, t } from "./words.js";

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
  document.documentElement.dataset.theme = isDark() && !isPrinting() ? "dark" : "light";
  $("#theme .lbl").textContent = isDark() ? t("Light") : t("Dark");
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

/** `pins`: how many answers are pinned. */
export function draw(answer, pins) {
  name();
  paint();
  for (const link of $$("#tabs a")) {
    const is = link.dataset.tab === state.tab;
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  $("#pinned").hidden = !pins;
  $("#pinned").textContent = pins;
  $("#ask").hidden = state.tab === "compare";
  $("#undo").disabled = !canUndo();
  const said = answer ? [answer.document.question.model?.value, answer.document.question.on?.value].filter(Boolean).join(", ") : "";
  document.title = said ? `tonnage: ${said}` : "tonnage";
}

/** Takes up what the reader chose before, and listens. `redraw` draws everything anew; `back` undoes. */
export async function begin(parts, redraw) {
  theme = parts.get("theme") ?? remembered.get("tonnage.theme");
  const wanted = parts.get("lang") ?? remembered.get("tonnage.lang") ?? (navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en");
  await speak(wanted).catch(() => null);
  dark.addEventListener("change", paint);
  $("#tabs").addEventListener("click", (event) => {
    const link = event.target.closest("[data-tab]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return; // another window
    event.preventDefault();
    turn(link.dataset.tab);
  });
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
  $(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment is the question's
    $("#main").focus();
  });
  $("#undo").addEventListener("click", undone);
  $("#toast-undo").addEventListener("click", undone);
  $("#share").addEventListener("click", share);
  document.addEventListener("keydown", keys);
}

function undone() {
  document.activeElement?.closest("#toast") && $("#undo").focus();
  hush();
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

async function share() {
  const words = $("#share .lbl");
  try {
    await navigator.clipboard.writeText(location.href);
    words.textContent = t("Copied");
    say(t("Copied"));
  } catch {
    // Without a secure address a page may not copy: the address bar has the link.
    words.textContent = t("See the address bar");
    say(t("See the address bar"));
  }
  setTimeout(() => (words.textContent = t("Copy link")), 1500);
}
