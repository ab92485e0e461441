/* Another tool's file, job or command, or the log of a run: pasted, dropped or chosen. The server reads it. Of a config the inputs become what it asks, and every key stands here with what it decides; of a log its diagnosis or its figures stand here. */
import { check, Refused } from "./api.js";
import { $, h, icon, say } from "./dom.js";
import * as logs from "./logs.js";
import { restore, state } from "./state.js";
import { language, t, tr } from "./words.js";

const LARGEST = 1_000_000; // bytes of a config that is read
const LARGEST_LOG = 200_000_000; // of a log: its start and end are sent
const BINARY = /^(\ufffd[\x00-\x08]|\x1f\ufffd)/; // how a pickle, and what gzip packed, begin where they are read as text
const KINDS = { used: "fits", assumed: "unknown", ignored: "unknown", "not understood": "tight" };

/** `text`, `name`: of what is read; `read`: what was understood of a config; `log`: what a log says, beside the question `beside`; `refused`: why nothing was. */
const panel = { text: "", name: "", read: null, log: null, beside: "", refused: "", reading: false };
let written = "";

export function listen() {
  $("#to-import").addEventListener("click", () => ($("#import").hidden ? show() : hide()));
  $("#import-close").addEventListener("click", hide);
  document.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  document.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer?.files ?? [];
    if (!file) return;
    event.preventDefault();
    show();
    open(file);
  });
}

function show() {
  $("#import").hidden = false;
  $("#to-import").setAttribute("aria-expanded", "true");
  draw();
  $("#import-text").focus();
}

export function hide() {
  if ($("#import").hidden) return;
  $("#import").hidden = true;
  $("#to-import").setAttribute("aria-expanded", "false");
  $("#to-import").focus();
}

/** Brought up to date with the language. */
export function draw() {
  if ($("#import").hidden) return;
  if (written !== language() || !$("#import-form")) {
    written = language();
    $("#import-body").replaceChildren(form(), h("div", { id: "import-found" }));
  }
  $("#import-send").disabled = panel.reading || !panel.text.trim();
  $("#import-send").textContent = panel.reading ? t("Reading…") : t("Read it");
  if ($("#import-err").textContent !== panel.refused) $("#import-err").textContent = panel.refused;
  $("#import-found").replaceChildren(...(panel.read ? found(panel.read) : panel.log ? logs.drawn(panel.log) : []));
  if (panel.log && logs.isOfPage(panel.log) && !panel.reading && panel.beside !== asked()) beside();
}

function form() {
  const text = h("textarea", { id: "import-text", rows: 10, spellcheck: "false", autocomplete: "off", "aria-describedby": "import-what import-err", oninput: ({ target }) => typed(target.value) });
  text.value = panel.text;
  return h("form", { id: "import-form", novalidate: true, onsubmit: (event) => (event.preventDefault(), send()) },
    h("label", { for: "import-text" }, t("A config, a job script, a command or a log")),
    text,
    h("p", { class: "note", id: "import-what" }, t("DeepSpeed, Accelerate, TRL, Axolotl, LLaMA-Factory, torchtitan, Megatron, veRL, vLLM, SGLang, llama.cpp, Ollama, Slurm, Kubernetes and others. A file can be dropped anywhere on this page. What names no model or machine takes those of the page. The log of a run that ran out of memory is diagnosed; figures of other logs, metrics and benchmarks stand beside the estimate.")),
    h("div", { class: "import-acts" },
      h("input", { type: "file", id: "import-file", "aria-label": t("Choose a file"), onchange: ({ target }) => target.files[0] && open(target.files[0]) }),
      h("button", { type: "submit", class: "btn", id: "import-send" })),
    h("p", { class: "err", id: "import-err", role: "alert" }));
}

function typed(text) {
  Object.assign(panel, { text, name: "", read: null, log: null, refused: "" });
  draw();
}

async function open(file) {
  const refused = await unreadable(file);
  if (refused) {
    Object.assign(panel, { read: null, log: null, refused });
    return draw();
  }
  Object.assign(panel, { text: await logs.textOf(file), name: file.name, read: null, log: null, refused: "" });
  $("#import-text").value = panel.text;
  await send();
}

/** Why a file cannot be read here; "" where it can. */
async function unreadable(file) {
  if (BINARY.test(await file.slice(0, 4).text())) return t("{name} is binary. Read a memory snapshot with `tonnage reconcile {name} -- train ...`.", { name: file.name });
  if (file.size > LARGEST_LOG) return t("{name} is larger than {n} MB.", { name: file.name, n: LARGEST_LOG / 1e6 });
  if (file.size > LARGEST && !logs.seemsLog(await file.slice(0, LARGEST).text())) return t("{name} is larger than {n} MB.", { name: file.name, n: LARGEST / 1e6 });
  return "";
}

/** Reads it as what it seems, else as the other; what it leaves open is taken from the page. */
async function send() {
  Object.assign(panel, { reading: true, refused: "", read: null, log: null });
  draw();
  try {
    if (logs.seemsLog(panel.text)) (await readLog()) || (await readConfig());
    else await readConfig().catch(async (error) => {
      if (!(error instanceof Refused) || !/of no tool/.test(error.message) || !(await readLog())) throw error;
    });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    panel.refused = tr(error.message);
  }
  panel.reading = false;
  draw();
}

const asked = () => JSON.stringify([state.tab, state.values]);

/** Whether it is a log. */
async function readLog() {
  panel.beside = asked();
  panel.log = await logs.read(panel.text, panel.name);
  if (panel.log) say(panel.log.diagnosis ? t("The log is diagnosed.") : t("Figures of the log stand beside the estimate."));
  return panel.log !== null;
}

/** The log again, beside the question that the page asks now. */
async function beside() {
  const mine = (panel.beside = asked());
  try {
    const found = await logs.read(panel.text, panel.name);
    if (mine !== asked() || !panel.log) return;
    Object.assign(panel, { log: found ?? panel.log, refused: "" });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    panel.refused = tr(error.message);
  }
  draw();
}

async function readConfig() {
  panel.read = (await understood()).read;
  const { verb, asks } = panel.read;
  const tab = verb === "serve" ? "serve" : (asks.method ?? "full") === "full" ? "train" : "tune";
  restore(tab, { ...Object.fromEntries(Object.entries(asks).map(([name, value]) => [name, String(value)])), as_is: "true" });
  say(t("Read as {tool}: the page asks it now.", { tool: panel.read.tool }));
}

/** As the file stands; where it names no model or no machine, with those of the page. */
async function understood() {
  const asked = { text: panel.text, ...(panel.name ? { name: panel.name } : {}), lenient: true };
  const { model, on } = state.values;
  const more = [{}, { model }, { on }, { model, on }].filter((each) => Object.values(each).every(Boolean));
  let refused;
  for (const each of more) {
    try {
      return (await check({ ...asked, ...each })).document;
    } catch (error) {
      if (!(error instanceof Refused) || !/names no (model|accelerators)/.test(error.message)) throw error;
      refused = error;
    }
  }
  throw refused;
}

function found(read) {
  const counted = (status) => read.keys.filter((key) => key.status === status).length;
  const tool = [...read.inside, `${read.tool} ${read.version}`].join(" · ");
  const unclear = counted("not understood");
  return [
    h("h3", {}, tool),
    h("p", {}, t("{used} keys decide the question, {assumed} are assumed, {ignored} change neither memory nor time.", { used: counted("used"), assumed: counted("assumed"), ignored: counted("ignored") })),
    unclear ? h("p", { class: "err" }, t("{n} were not understood, and may change the answer.", { n: unclear })) : null,
    h("ul", { class: "import-keys", "aria-label": t("Keys") }, read.keys.map(row)),
  ].filter(Boolean);
}

function row({ key, value, status, options, why }) {
  const decides = options.length ? [" → ", ...options.map((option) => h("code", {}, option))] : [];
  return h("li", { class: status === "not understood" ? "unclear" : status }, icon(KINDS[status]), " ", h("code", {}, key), ` = ${value}`, ...decides, h("small", {}, [tr(status), why ? tr(why) : ""].filter(Boolean).join(": ")));
}
