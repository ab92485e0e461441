/* The draw loop: an input changes, the newest question is asked, the answer is drawn. Every section is a file of parts/ that exports
   draw(slot, answer, state, latest). answer: {verb, question, asked, document, status, command, signal, settled}, the last valid one, or null; `signal` is
   aborted when a newer question is asked, for parts that ask more; `asked`: the tab and the inputs that it is of; not `settled`: the next best moves are still on their way; `unadvised`: why there are none.
   Of a `summary` the document has no trees: the verdict and the facts are drawn from it, while the trees are on their way. state: {tab, values, view, card, waiting, error, field, cancel}.
   latest: the newest answer of any tab. */
import { announce } from "./announce.js";
import { ask, options, Refused } from "./api.js";
import { show } from "./card.js";
import { $, $$, forgetWidths, keepingFocus } from "./dom.js";
import { offerAll } from "./figures.js";
import * as frame from "./frame.js";
import * as hover from "./hover.js";
import * as importing from "./import.js";
import * as inputs from "./inputs/all.js";
import { labelOf } from "./inputs/labels.js";
import * as model from "./inputs/model.js";
import { openSlot } from "./inputs/question.js";
import * as inspector from "./inspector.js";
import * as machine from "./machine.js";
import * as saved from "./saved.js";
import { follow, onChange, question, read, state, undo, VERB, VIEWS } from "./state.js";
import { drawPatterns } from "./svg.js";
import { t } from "./words.js";
import * as accelerators from "./parts/accelerators.js";
import * as advice from "./parts/advice.js";
import * as bar from "./parts/bar.js";
import * as bars from "./parts/bars.js";
import * as below from "./parts/below.js";
import * as breakdown from "./parts/breakdown.js";
import * as cost from "./parts/cost.js";
import * as facts from "./parts/facts.js";
import * as frontier from "./parts/frontier.js";
import * as matrix from "./parts/matrix.js";
import * as plan from "./parts/plan.js";
import * as repro from "./parts/repro.js";
import * as rules from "./parts/rules.js";
import * as timeline from "./parts/timeline.js";
import * as tray from "./parts/tray.js";
import * as verdict from "./parts/verdict.js";
import * as views from "./parts/views.js";
import * as warnings from "./parts/warnings.js";

const others = { draw: advice.drawOthers };
const PARTS = { verdict, bar, below, advice, facts, views, bars, breakdown, timeline, cost, matrix, accelerators, frontier, others, warnings, plan, tray, rules, repro };
const PATIENCE = 150; // ms before a question is said to take time
const ADVISED = ["advice", "others", "warnings", "repro"]; // parts that show the moves or what they bring, or the command that asks for them
const FORETOLD = ["verdict", "below", "facts"]; // parts that need no trees
const ALONE = ["plan", "compare", "rules"]; // tabs whose parts ask for themselves, or nothing
const ALWAYS = ["verdict"]; // parts that need no answer

let answer = null;
let asking = new AbortController();
let printing = false;

/** `only`: the names of some parts. */
function draw(only = null) {
  // An answer of another verb says nothing here: the tab is empty until its own is there.
  const shown = answer && answer.verb === VERB[state.tab] ? answer : null;
  show(shown?.document);
  if (shown) offerAll(shown.document);
  document.body.dataset.state = stateOf(shown);
  keepingFocus(() => {
    frame.draw(shown, tray.pinned());
    const error = inputs.draw(state, shown, state.error);
    state.field = error?.at ? (labelOf(error.at) ?? error.at) : "";
    $("#panel").hidden = !shown; // before its parts are drawn: what is hidden has no width
    for (const slot of $$("[data-part]")) {
      const { part } = slot.dataset;
      if (only && !only.includes(part)) continue;
      if (opened(slot, shown)) PARTS[part].draw(slot, shown, error ? { ...state, error } : state, answer);
    }
    $("#panel").setAttribute("aria-labelledby", `view-${state.view}`);
    tray.drawBar($("#pins"));
    inspector.drawCard(shown?.document ?? null);
    saved.draw();
    importing.draw();
  });
}

/** Whether a section stands on the page now. What stands in a view that is closed is neither drawn nor kept. */
function opened(slot, shown) {
  const owner = slot.closest("[data-tabs]");
  const view = printing ? VIEWS[0] : state.view;
  const { tabs, views: within } = owner.dataset;
  const closed = within !== undefined && !within.split(" ").includes(view);
  owner.hidden = closed || !tabs.split(" ").includes(state.tab) || (!shown && !ALONE.includes(state.tab) && !ALWAYS.includes(slot.dataset.part));
  if (within !== undefined && owner.hidden) slot.replaceChildren();
  return !owner.hidden;
}

function stateOf(shown) {
  const kind = state.waiting ? "loading" : state.error ? "error" : shown || ALONE.includes(state.tab) ? "answered" : "empty";
  $("#results").setAttribute("aria-busy", String(kind === "loading"));
  return kind;
}

/** Asks the question that the inputs are now; an older one is dropped. */
async function refresh() {
  asking.abort();
  const mine = (asking = new AbortController());
  const slow = setTimeout(() => patience(mine), PATIENCE);
  const tab = state.tab;
  document.body.dataset.asking = tab;
  try {
    const asked = await questionOf(tab);
    if (mine.signal.aborted) return;
    if (asked) {
      inputs.draw(state, answer?.verb === VERB[tab] ? answer : null, state.error); // the sentence has the new value before the answer is there
      const short = await answered(asked, mine.signal, "summary");
      clearTimeout(slow);
      if (mine.signal.aborted) return;
      foretell(short);
    }
    const found = asked && (await answered(asked, mine.signal));
    clearTimeout(slow);
    if (mine.signal.aborted) return;
    answer = found ?? (VERB[tab] ? null : answer);
    Object.assign(state, { waiting: "", error: null });
    draw();
    if (!found) return;
    announce(found.document);
    document.body.dataset.drawn = Number(document.body.dataset.drawn ?? 0) + 1;
    await settle(found, mine.signal);
  } catch (error) {
    if (mine.signal.aborted) return;
    Object.assign(state, { waiting: "", error: refusal(error) });
    draw();
  } finally {
    clearTimeout(slow);
    if (mine === asking) delete document.body.dataset.asking;
  }
}

/** {verb, question, asked} of the inputs; null where nothing is asked. */
async function questionOf(tab) {
  const verb = VERB[tab];
  const rows = await options(verb ?? "train");
  inputs.build(tab, rows);
  if (!verb || !state.values.model) return null;
  inputs.check();
  return { verb, question: question(tab, new Set(rows.map((each) => each.name))), asked: { tab, values: { ...state.values } } };
}

async function answered({ verb, question: asks, asked }, signal, detail = "full") {
  const reply = await ask(verb, { ...asks, advice: false }, signal, detail);
  return { verb, question: asks, asked, signal, settled: false, ...reply, command: null };
}

/** Draws what needs no trees: a document of a thousand figures takes longer to come and to draw. */
function foretell(short) {
  state.waiting = "";
  keepingFocus(() => {
    for (const slot of $$("[data-part]").filter((each) => FORETOLD.includes(each.dataset.part))) {
      slot.closest("[data-tabs]").hidden = false;
      PARTS[slot.dataset.part].draw(slot, short, { ...state, error: null });
    }
  });
  document.body.dataset.foretold = Number(document.body.dataset.foretold ?? 0) + 1;
}

/** The same answer with the next best moves, which take longer than all else: it is drawn without them first. */
async function settle(found, signal) {
  await painted();
  const whole = await ask(found.verb, found.question, signal).catch((error) => (signal.aborted ? null : { unadvised: refusal(error).message }));
  if (signal.aborted) return;
  answer = { ...found, ...whole, settled: true };
  draw(ADVISED);
}

const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

function refusal(error) {
  if (error instanceof Refused) return error;
  console.error(error);
  return new Refused("Error", String(error.message ?? error));
}

function patience(mine) {
  if (mine.signal.aborted) return;
  const name = state.values.model ?? "";
  state.waiting = name.includes("/") ? t("Reading {model}", { model: name }) : t("Computing");
  state.cancel = cancel;
  draw();
}

/** What takes too long is given up, with the change that asked for it. */
function cancel() {
  asking.abort();
  state.waiting = "";
  if (!undo()) draw();
}

function listen() {
  document.addEventListener("click", ({ target }) => {
    const number = target.closest("[data-card]");
    if (number) inspector.open(number.dataset.card, number);
    const drawn = target.closest("[data-opens]");
    if (drawn) inspector.open(drawn.dataset.opens, $(`main [data-card="${CSS.escape(drawn.dataset.opens)}"]`));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !inspector.close()) (saved.hide(), importing.hide());
    if (event.key === "/" && !event.target.closest("input, select, textarea")) {
      event.preventDefault();
      openSlot("model");
    }
    const mark = event.target.closest?.('g[role="button"][data-card]');
    if (mark && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      inspector.open(mark.dataset.card, mark);
    }
  });
  // Drawings have the width of their column: of the window, less the inspector where it stands beside.
  let width = $("main").clientWidth;
  new ResizeObserver(() => {
    if ($("main").clientWidth === width) return;
    width = $("main").clientWidth;
    forgetWidths();
    requestAnimationFrame(() => draw());
  }).observe($("main"));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  addEventListener("hashchange", () => follow(location.hash));
  views.onTurn(() => draw());
  tray.onPins(() => draw());
  hover.listen();
  saved.listen();
  importing.listen();
}

/** Paper has the parts of the memory, whichever view is open. */
function print(is) {
  if (printing === is) return;
  printing = is;
  draw();
}

drawPatterns($("#patterns"));
const parts = await read(location.hash);
await frame.begin(parts, refresh);
// Lists that make the page better, without which it works: names of models and machines, meanings of letters.
await Promise.allSettled([model.learn(), machine.learn(), inspector.learn()]);
onChange(refresh);
listen();
if (state.card) $("#inspector").classList.add("open");
await refresh();
document.body.dataset.ready = "";
