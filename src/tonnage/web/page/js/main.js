/* The draw loop: an input changes, the newest question is asked, the answer is drawn. Every section is a file of parts/ that exports
   draw(slot, answer, state). answer: {verb, question, document, status, command, signal, settled}, the last valid one, or null; `signal` is
   aborted when a newer question is asked, for parts that ask more; not `settled`: the next best moves are still on their way; `unadvised`: why there are none.
   Of a `summary` the document has no trees: the verdict and the facts are drawn from it, while the trees are on their way. state: {tab, values, card, waiting, error, field, cancel}. */
import { announce } from "./announce.js";
import { ask, options, Refused } from "./api.js";
import { show } from "./card.js";
import { $, $$, keepingFocus } from "./dom.js";
import { offerAll } from "./figures.js";
import * as frame from "./frame.js";
import * as hover from "./hover.js";
import * as inputs from "./inputs/all.js";
import * as inspector from "./inspector.js";
import * as machine from "./machine.js";
import * as model from "./inputs/model.js";
import * as saved from "./saved.js";
import { follow, onChange, question, read, state, undo, VERB } from "./state.js";
import { drawPatterns } from "./svg.js";
import { t } from "./words.js";
import * as accelerators from "./parts/accelerators.js";
import * as advice from "./parts/advice.js";
import * as bar from "./parts/bar.js";
import * as bars from "./parts/bars.js";
import * as breakdown from "./parts/breakdown.js";
import * as examples from "./parts/examples.js";
import * as facts from "./parts/facts.js";
import * as frontier from "./parts/frontier.js";
import * as matrix from "./parts/matrix.js";
import * as plan from "./parts/plan.js";
import * as repro from "./parts/repro.js";
import * as rules from "./parts/rules.js";
import * as timeline from "./parts/timeline.js";
import * as tray from "./parts/tray.js";
import * as verdict from "./parts/verdict.js";
import * as warnings from "./parts/warnings.js";

const PARTS = { examples, verdict, bar, facts, warnings, tray, bars, breakdown, advice, timeline, frontier, matrix, accelerators, plan, rules, repro };
const PATIENCE = 150; // ms before a question is said to take time
const ADVISED = ["advice", "warnings", "repro"]; // parts that show the moves or what they bring, or the command that asks for them
const FORETOLD = ["verdict", "facts"]; // parts that need no trees
const ALONE = ["plan", "rules"]; // tabs whose parts ask for themselves
const ALWAYS = ["examples", "verdict"]; // parts that need no answer

let answer = null;
let asking = new AbortController();

/** `only`: the names of some parts. */
function draw(only = null) {
  // An answer of another verb says nothing here: the tab is empty until its own is there.
  const shown = answer && answer.verb === VERB[state.tab] ? answer : null;
  show(shown?.document);
  if (shown) offerAll(shown.document);
  document.body.dataset.state = stateOf(shown);
  keepingFocus(() => {
    frame.draw(shown);
    state.field = inputs.refresh(state, shown, state.error);
    for (const slot of $$("[data-part]")) {
      if (only && !only.includes(slot.dataset.part)) continue;
      const owner = slot.closest("[data-tabs]");
      owner.hidden = !owner.dataset.tabs.split(" ").includes(state.tab) || (!shown && !ALONE.includes(state.tab) && !ALWAYS.includes(slot.dataset.part));
      if (!owner.hidden) PARTS[slot.dataset.part].draw(slot, shown, state);
    }
    inspector.drawCard(shown?.document ?? null);
    saved.draw();
  });
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
    if (asked) {
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

/** {verb, question} of the inputs; null where nothing is asked. */
async function questionOf(tab) {
  const verb = VERB[tab];
  const rows = await options(verb ?? "train");
  inputs.build(tab, rows);
  if (!verb || !state.values.model) return null;
  inputs.check();
  return { verb, question: question(tab, new Set(rows.map((each) => each.name))) };
}

async function answered({ verb, question: asked }, signal, detail = "full") {
  const reply = await ask(verb, { ...asked, advice: false }, signal, detail);
  return { verb, question: asked, signal, settled: false, ...reply, command: null };
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
    if (event.key === "Escape") inspector.close();
    const mark = event.target.closest?.('g[role="button"][data-card]');
    if (mark && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      inspector.open(mark.dataset.card, mark);
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    // Drawings have the width of their column; a phone's address bar changes the height alone.
    if (innerWidth === width) return;
    width = innerWidth;
    requestAnimationFrame(() => draw());
  });
  addEventListener("hashchange", () => follow(location.hash));
  hover.listen();
  saved.listen();
}

drawPatterns($("#patterns"));
const parts = await read(location.hash);
await frame.begin(parts, () => {
  inputs.forget();
  refresh();
});
// Lists that make the page better, without which it works: names of models and machines, meanings of letters.
await Promise.allSettled([model.learn(), machine.learn(), inspector.learn()]);
onChange(refresh);
listen();
if (state.card) $("#inspector").classList.add("open");
await refresh();
document.body.dataset.ready = "";
