/* Saved plans: questions under names, each with all its versions. The server keeps them; the list is asked for when the panel is opened. */
import { announceNext } from "./announce.js";
import { save, saved, savedHistory, savedPlan, saves, unsave } from "./api.js";
import { $, h, icon, keepingFocus, say } from "./dom.js";
import { isPasted } from "./pasted.js";
import { WORDS } from "./marks.js";
import { gib, usd } from "./numbers.js";
import { asked, stateOf } from "./saved_state.js";
import { restore, state } from "./state.js";
import { language, t, tr } from "./words.js";

const NAMES = 100, VERSIONS = 20; // that are asked for at a time
const COMPARED = 100_000; // bytes of a version whose question is read to show what has changed
const AGAIN = 1500, TRIES = 40; // milliseconds until figures that follow a save are looked for again, and how often
const NO_ANSWER = 64; // status of a question that turned out to have none: the answer says why
const KINDS = { 0: "fits", 2: "tight", 3: "no" }; // of the command line's status
const TABS = { train: () => t("Train"), tune: () => t("Fine-tune"), serve: () => t("Serve"), plan: () => t("Plan") };

/** `plans`: null until they are there. `commands`: "name version" -> the command line of a question that the page has no inputs for. `older`: name -> its versions, or null while they are asked for. `doomed`: the name that is about to be
    deleted, `whole`: with all its versions. `absent`: says why nothing is saved here. */
const panel = { plans: null, more: false, loading: false, error: null, absent: null, older: new Map(), commands: new Map(), doomed: "", whole: false, saving: false, refused: "" };
let written = ""; // the language in which the form stands

const body = () => $("#saved-body");

export function listen() {
  $("#to-saved").addEventListener("click", () => ($("#saved").hidden ? show() : hide()));
  $("#saved-close").addEventListener("click", hide);
}

/** The panel, opened. */
function show() {
  $("#saved").hidden = false;
  $("#to-saved").setAttribute("aria-expanded", "true");
  draw();
  load();
  $("#h-saved").focus();
}

/** The panel, closed; the focus goes back to what opened it. */
export function hide() {
  if ($("#saved").hidden) return;
  $("#saved").hidden = true;
  $("#to-saved").setAttribute("aria-expanded", "false");
  $("#to-saved").focus();
}

/** Brought up to date with what the page asks now. */
export function draw() {
  if ($("#saved").hidden) return;
  if (panel.absent) return void body().replaceChildren(h("p", { class: "note" }, panel.absent()));
  if (written !== language() || !$("#saved-form")) {
    const name = $("#saved-name")?.value ?? "";
    written = language();
    body().replaceChildren(form(name), h("div", { id: "saved-list" }));
  }
  refreshForm();
  $("#saved-list").setAttribute("aria-busy", String(panel.loading));
  $("#saved-list").replaceChildren(...list().flat().filter(Boolean));
}

const redraw = () => keepingFocus(draw);

/* ---- what the server has ---- */

/** Anew from the first name on; or the names after those that are there. */
async function load(after = "") {
  Object.assign(panel, { loading: true, error: null });
  redraw();
  try {
    const [keeps, { plans, more }] = await Promise.all([saves(), saved(after, NAMES)]);
    panel.absent = keeps ? null : () => t("This server saves no plans; its owner starts it with --store where it is to.");
    panel.plans = after ? [...panel.plans, ...plans] : plans;
    panel.more = more;
    if (!after) panel.older.clear();
    plans.filter((each) => each.status === null).forEach((each) => awaitFigures(each));
  } catch (error) {
    if (error.kind === "NotInBrowser") panel.absent = () => t("This needs `tonnage web`: a page without a server keeps nothing.");
    else panel.error = error;
  }
  panel.loading = false;
  redraw();
}

const known = (name) => panel.plans?.find((each) => each.name === name);

/** Puts a version that has just been read or saved in its place. */
function put(plan) {
  panel.plans = [...panel.plans.filter((each) => each.name !== plan.name), plan].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Figures of a version follow its save where the server was busy. */
async function awaitFigures({ name, version }) {
  for (let tries = 0; tries < TRIES; tries++) {
    await new Promise((done) => setTimeout(done, AGAIN));
    const plan = await savedPlan(name).catch(() => null);
    if (!plan || plan.version !== version || known(name)?.version !== version) return; // others have taken its place
    if (plan.status === null) continue;
    put(plan);
    return redraw();
  }
}

/* ---- to save ---- */

function form(name) {
  return h("form", { id: "saved-form", novalidate: true, onsubmit: (event) => (event.preventDefault(), keep()) },
    h("label", { for: "saved-name" }, t("Name")),
    h("div", { class: "saved-new" },
      h("input", { id: "saved-name", name: "saved_name", value: name, maxlength: 100, autocomplete: "off", spellcheck: "false", "aria-describedby": "saved-what saved-err", oninput: refreshForm }),
      h("button", { type: "submit", class: "btn", id: "saved-save" })),
    h("p", { class: "note", id: "saved-what" }),
    h("p", { class: "err", id: "saved-err", role: "alert" }));
}

function refreshForm() {
  const there = known($("#saved-name").value.trim());
  const nothing = !state.values.model || !(state.tab in TABS);
  const button = $("#saved-save");
  button.disabled = nothing || panel.saving || !$("#saved-name").value.trim();
  button.textContent = panel.saving ? t("Saving…") : there ? t("Save as version {number}", { number: there.version + 1 }) : t("Save");
  $("#saved-what").textContent = state.tab === "rules" ? t("Rules of thumb ask nothing that could be saved.") : nothing ? t("Name a model, and its question can be saved here.") : t("Saves what this page asks now: {question}", { question: TABS[state.tab]() + t(", ") + modelOf(state.values.model) });
  if ($("#saved-err").textContent !== panel.refused) $("#saved-err").textContent = panel.refused;
}

const modelOf = (model) => (typeof model === "object" || isPasted(model ?? "") ? t("pasted config.json") : (model ?? ""));

async function keep() {
  const name = $("#saved-name").value.trim();
  if (!name || panel.saving) return;
  Object.assign(panel, { saving: true, refused: "" });
  refreshForm();
  try {
    const now = await asked();
    const plan = await save(name, now.verb, now.question, known(name)?.version ?? 0);
    if (panel.plans) put(plan);
    else load();
    if (plan.status === null) awaitFigures(plan);
    panel.older.delete(name);
    say(t("Saved as version {number}", { number: plan.version }));
  } catch (error) {
    panel.refused = await failed(error, name);
  }
  panel.saving = false;
  redraw();
}

/** What to say of a refusal. Where somebody else has saved or deleted since, the list learns what is there now. */
async function failed(error, name) {
  if (error.status !== 409 && error.status !== 404) return tr(error.message);
  const plan = await savedPlan(name).catch(() => null);
  panel.plans = (panel.plans ?? []).filter((each) => each.name !== name);
  if (plan) put(plan);
  panel.older.delete(name);
  if (!plan) return t("{name} is not saved any more.", { name });
  return t("Somebody else has changed {name} since; the list is up to date now. Do it once more, if it is still right.", { name });
}

/* ---- the list ---- */

function list() {
  if (panel.error) return [h("p", { class: "err", role: "alert" }, tr(panel.error.message)), h("button", { type: "button", class: "btn", "data-key": "saved again", onclick: () => load() }, t("Try again"))];
  if (!panel.plans) return [h("p", { class: "note" }, t("Reading what is saved…"))];
  if (!panel.plans.length) return [h("p", { class: "note" }, t("Nothing is saved yet."))];
  const more = panel.more && h("button", { type: "button", class: "btn", "data-key": "saved more", disabled: panel.loading, onclick: () => load(panel.plans.at(-1).name) }, t("More"));
  return [h("ul", { class: "saved", "aria-label": t("Saved plans") }, panel.plans.map(item)), more];
}

function item(plan) {
  const { name } = plan;
  const wide = panel.older.has(name);
  return h("li", {},
    h("h3", {}, name), summary(plan),
    h("div", { class: "saved-acts" },
      opening(plan, t("Open {name}", { name }), `saved open ${name}`),
      h("button", { type: "button", class: "btn", "data-key": `saved history ${name}`, "aria-expanded": String(wide), "aria-label": t("History of {name}", { name }), onclick: () => unfold(name) }, t("History")),
      h("button", { type: "button", class: "btn", "data-key": `saved delete ${name}`, "aria-label": t("Delete {name}", { name }), "aria-expanded": String(panel.doomed === name), onclick: () => doom(name) }, t("Delete"))),
    panel.doomed === name ? sure(plan) : null,
    wide ? history(name) : null);
}

/** What was asked, what the answer was, and when. */
function summary(plan) {
  const { verb, model, machine, method } = plan;
  const tab = TABS[verb === "train" && method !== null ? "tune" : verb]?.() ?? verb;
  return [h("small", {}, [tab, model === "config.json" ? t("pasted config.json") : model, machine].filter(Boolean).join(" · ")), answerOf(plan), dateOf(plan)];
}

function answerOf({ verb, status, answer, needed_bytes: need, usable_bytes: usable, usd: price, usd_of: of }) {
  const kind = KINDS[status] ?? "unknown";
  if (status === null) return h("p", {}, icon(kind), " ", t("Its figures are being computed."));
  if (status === NO_ANSWER) return h("p", {}, icon(kind), " ", tr(answer));
  const words = verb === "train" || verb === "serve" ? WORDS[kind]() : verb === "max" ? answer.replace(/ \S+$/, (unit) => ` ${tr(unit.trim())}`) : tr(answer);
  const facts = [need !== null && usable !== null ? t("{need} of {usable} GiB", { need: gib(need), usable: gib(usable) }) : null, price !== null && of ? t("{usd} ({of})", { usd: usd(price), of: tr(of) }) : null];
  return h("p", {}, icon(kind), " ", [words, ...facts].filter(Boolean).join(" · "));
}

const dateOf = ({ version, saved: when, tonnage }) => h("small", {}, t("version {number}, {when}, tonnage {tonnage}", { number: version, when: dated(when), tonnage }));

const dated = (text) => new Intl.DateTimeFormat({ en: "en-GB", zh: "zh-Hans" }[language()], { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));

/* ---- to open ---- */

/** A button that restores the page of a version; where the page turned out to have no inputs for it, the command line that asks it. */
function opening(plan, words, key) {
  const command = panel.commands.get(versionKey(plan));
  if (command) return h("div", { class: "saved-command", tabindex: "-1", "data-key": key }, h("p", { class: "note" }, t("The page has no inputs for this question; the command line has:")), h("pre", {}, command));
  return h("button", { type: "button", class: "btn", "data-key": key, "aria-label": words, onclick: () => open(plan) }, t("Open"));
}

const versionKey = ({ name, version }) => `${name} ${version}`;

/** Its question is read now, where a list has none. */
async function open(listed) {
  const { name, version } = listed;
  let plan;
  try {
    plan = "question" in listed ? listed : await savedPlan(name, version);
    if (!plan) panel.refused = t("{name} is not saved any more.", { name });
  } catch (error) {
    panel.refused = await failed(error, name);
  }
  if (!plan) return redraw();
  panel.refused = "";
  const found = stateOf(plan);
  if (found) return restored(plan, found);
  panel.commands.set(versionKey(plan), plan.command);
  redraw();
}

function restored(plan, { tab, values }) {
  $("#saved-name").value = plan.name;
  announceNext();
  restore(tab, values);
  say(t("Opened {name}, version {number}", { name: plan.name, number: plan.version }));
}

/* ---- history ---- */

async function unfold(name) {
  if (panel.older.has(name)) {
    panel.older.delete(name);
    return redraw();
  }
  await older(name);
}

async function older(name, before = 0) {
  const there = before ? panel.older.get(name) : [];
  panel.older.set(name, before ? there : null);
  redraw();
  let found;
  try {
    const { plans, more } = await savedHistory(name, before, VERSIONS);
    found = [...there, ...(await Promise.all(plans.map((each) => (each.bytes > COMPARED ? each : savedPlan(name, each.version).then((whole) => whole ?? each)))))];
    found.more = more;
  } catch (error) {
    found = error;
  }
  if (!panel.older.has(name)) return; // folded meanwhile
  panel.older.set(name, found);
  redraw();
}

function history(name) {
  const versions = panel.older.get(name);
  if (!versions) return h("p", { class: "note", "aria-busy": "true" }, t("Reading what is saved…"));
  if (versions instanceof Error) return h("p", { class: "err", role: "alert" }, tr(versions.message));
  return [
    h("ol", { class: "saved-history", "aria-label": t("History of {name}", { name }) }, versions.map((each, at) => h("li", {}, dateOf(each), answerOf(each), changes(each, versions[at + 1]), opening(each, t("Open version {number} of {name}", { number: each.version, name }), `saved open ${name} ${each.version}`)))),
    versions.more ? h("button", { type: "button", class: "btn", "data-key": `saved older ${name}`, onclick: () => older(name, versions.at(-1).version) }, t("More")) : null,
  ];
}

/** What a version asks otherwise than the one before it: names of options stay as they are typed. */
function changes({ verb, question }, before) {
  if (!question || !before?.question) return null; // the first version, or one that is too long to be compared
  const names = [...new Set([...Object.keys(before.question), ...Object.keys(question)])].filter((name) => told(question[name]) !== told(before.question[name]));
  const lines = names.map((name) => [name, told(before.question[name]), told(question[name])]);
  if (verb !== before.verb) lines.unshift([t("question"), before.verb, verb]);
  return lines.length ? lines.map(([name, old, now]) => h("small", {}, h("code", {}, name), ` ${old} → ${now}`)) : h("small", {}, t("asks the same as the version before"));
}

const told = (value) => (value === undefined ? "–" : typeof value === "object" ? modelOf(value) : String(value).length > 60 ? t("pasted config.json") : String(value));

/* ---- to delete ---- */

function doom(name) {
  Object.assign(panel, { doomed: panel.doomed === name ? "" : name, whole: false });
  redraw();
  if (panel.doomed) $("#saved-spare").focus();
}

function sure(plan) {
  const spare = () => {
    panel.doomed = "";
    redraw();
    $(`[data-key="${CSS.escape(`saved delete ${plan.name}`)}"]`)?.focus();
  };
  const onkeydown = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation(); // closes this alone
    spare();
  };
  return h("div", { class: "saved-sure", role: "group", "aria-label": t("Delete {name}?", { name: plan.name }), onkeydown },
    h("p", {}, t("Delete {name}? Its versions stay, and come back when the name is saved again.", { name: plan.name })),
    h("label", { class: "saved-whole" }, h("input", { type: "checkbox", id: "saved-whole", checked: panel.whole, onchange: ({ target }) => (panel.whole = target.checked) }), t("Delete all its versions too, for good")),
    h("button", { type: "button", class: "btn", id: "saved-spare", onclick: spare }, t("Keep it")),
    h("button", { type: "button", class: "btn", id: "saved-doom", "aria-label": t("Yes, delete {name}", { name: plan.name }), onclick: () => remove(plan) }, t("Delete")));
}

async function remove({ name, version }) {
  panel.doomed = "";
  panel.refused = "";
  try {
    await unsave(name, version, panel.whole);
    panel.plans = panel.plans.filter((each) => each.name !== name);
    panel.older.delete(name);
    say(t("Deleted {name}", { name }));
  } catch (error) {
    panel.refused = await failed(error, name);
  }
  redraw();
  $("#saved-name").focus();
}
