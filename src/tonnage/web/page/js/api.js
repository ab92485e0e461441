/* All that the page asks of a server stands here, so that the page without one can put its own transport in its place. */

/** What was refused, with the words of the command line. `kind`: the error's class, or "Unreachable" where no answer came. `field`: the input
    that it is about, where the page found that itself. */
export class Refused extends Error {
  constructor(kind, message, status = 0, field = "") {
    super(message);
    this.kind = kind;
    this.status = status;
    this.field = field;
  }
}

/** (method, path, body, signal, seen) -> {ok, status, header(name), json()}. The one place that knows of HTTP. `seen`: the version that is
    changed, where it must still be the latest. */
async function http(method, path, body, signal, seen) {
  const address = new URL(path.replace(/^\//, ""), document.baseURI);
  const reply = await fetch(address, {
    method,
    signal,
    keepalive: method === "DELETE", // also of a page that is being left
    headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(seen ? { "If-Match": `"${seen}"` } : {}) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { ok: reply.ok, status: reply.status, header: (name) => reply.headers.get(name), json: () => reply.json() };
}

let transport = http;

const words = { en: new Map() }; // language -> English text -> text, of the answers that came
let spoken = "en";

/** From here on questions are asked with the words of a language. */
export function sayIn(language) {
  words[language] ??= new Map();
  spoken = language;
}

/** A text of an answer as the server put it into words; undefined where it has none. */
export const wordsOf = (english) => words[spoken].get(english);

const inWords = (question) => (spoken === "en" ? question : { ...question, lang: spoken });

/** Keeps the words that stand beside a document, and gives the document without them. */
function learn({ said = {}, ...document }) {
  for (const [english, text] of Object.entries(said)) words[spoken].set(english, text);
  return document;
}

/** Puts another transport in place of HTTP. */
export function sendBy(other) {
  transport = other;
}

async function sent(method, path, body, signal, seen) {
  let reply;
  try {
    reply = await transport(method, path, body, signal, seen);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("Unreachable", "tonnage does not answer: is `tonnage web` still running?");
  }
  if (reply.ok) return reply;
  const said = await reply.json().then(learn).catch(() => null);
  throw new Refused(said?.error?.kind ?? "Error", said?.error?.message ?? said?.detail ?? `the server answers with status ${reply.status}.`, reply.status);
}

/** An answer: {document, status, command}. `status` is the command line's: 0 fits, 2 tight, 3 does not fit, 4 not enough is known. `detail`: of
    its document. */
export async function ask(verb, question, signal, detail = "full") {
  const reply = await sent("POST", `/v1/${verb}${detail === "full" ? "" : `?detail=${detail}`}`, inWords(question), signal);
  const command = decodeURIComponent(reply.header("Tonnage-Command") ?? "");
  return { document: learn(await reply.json()), status: Number(reply.header("Tonnage-Status") ?? 0), command };
}

const kept = new Map();

/** A list that does not change while the page is open: asked once. A failure is not kept. */
function once(path, read = (list) => list) {
  if (!kept.has(path)) {
    const reply = sent("GET", path).then(async (each) => read(await each.json()));
    reply.catch(() => kept.delete(path));
    kept.set(path, reply);
  }
  return kept.get(path);
}

export const accelerators = () => once("/v1/accelerators");
export const models = () => once("/v1/models");
export const glossary = () => once("/v1/glossary");
/** How far parts of the memory lie from published measurements: [{verb, runtime, part, median, p90, rows}]. */
export const partErrors = async () => (await once("/v1/server")).part_errors;
export const formulas = () => once("/v1/formulas");
export const prices = () => once("/v1/prices");
export const locale = (language) => once(`/locale/${language}.json`);
export const model = (name) => once(`/v1/models/${encodeURIComponent(name)}${spoken === "en" ? "" : `?lang=${spoken}`}`, learn);
export const launch = async (verb, question, signal) => learn(await (await sent("POST", "/v1/launch", inWords({ verb, ...question }), signal)).json());

/** What another tool's file asks: {document, status}. Its document has `read`, the keys and the question. */
export const check = (asked) => ask("check", asked);
export const diagnose = (asked) => ask("diagnose", asked);
export const reconcile = (asked) => ask("reconcile", asked);
/** The formats that a verb's questions can be written in. */
export const exports = async (verb) => (await once("/v1/server")).exports?.[verb] ?? [];
export const exported = async (verb, format, question, signal) => (await (await sent("POST", "/v1/export", { verb, format, ...question }, signal)).json()).text;

/** The options of a verb: [{name, help, unit, default, kind, group}]; kind is "text" or "switch". */
export const options = (verb) => once(`/v1/options/${verb}`);

/* ---- saved plans ---- */

const savedPath = (name) => `/v1/saved/${encodeURIComponent(name)}`;

/** Whether plans are saved at all. */
export const saves = async () => (await once("/v1/server")).saves;

/** {plans, more}: a page of names with the figures of their latest version, by name, of those after one; without their questions. */
export const saved = async (after, limit) => (await sent("GET", `/v1/saved?limit=${limit}${after ? `&after=${encodeURIComponent(after)}` : ""}`)).json();

/** {plans, more}: a page of the versions of a name, the latest first, of those before one; without their questions. */
export const savedHistory = async (name, before, limit) => (await sent("GET", `${savedPath(name)}/history?limit=${limit}${before ? `&before=${before}` : ""}`)).json();

/** A version of a name with its question, the latest where none is given; null where it is not saved. */
export async function savedPlan(name, version = null) {
  try {
    return (await (await sent("GET", `${savedPath(name)}${version ? `?version=${version}` : ""}`)).json()).plan;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** Saves a question. `seen`: the latest version that is known of the name, 0 where none is. */
export const save = async (name, verb, question, seen) => (await (await sent("POST", "/v1/saved", { name, verb, question, ...(seen ? { version: seen } : {}) })).json()).plan;

/** Deletes a name where `seen` is still its latest version; with its history where that is said. */
export const unsave = (name, seen, history) => sent("DELETE", `${savedPath(name)}?history=${history}`, undefined, undefined, seen);

/* ---- jobs ---- */

/** An answer that may take long: as a job, whose progress comes as `told({what, done, of})`, and each better plan as `told({best})`; aborting cancels it. Where there are no jobs, or no
    place for one more, it is asked as any question. */
export async function search(verb, question, signal, told) {
  let job;
  try {
    // Not aborted on its way: a job that nobody knows would go on.
    job = await (await sent("POST", "/v1/jobs", { verb, question: inWords(question) })).json();
  } catch (error) {
    if (![404, 405, 503].includes(error.status)) throw error;
    return ask(verb, question, signal);
  }
  return followed(job.id, signal, told);
}

const resultOf = (result) => (result.document ? { ...result, document: learn(result.document) } : result);
const refusedBy = ({ kind = "Error", message }) => new Refused(kind, message ?? kind);

function followed(id, signal, told) {
  const events = new EventSource(new URL(`v1/jobs/${id}/events`, document.baseURI));
  return new Promise((resolve, reject) => {
    const over = (end, thing) => {
      events.close();
      removeEventListener("pagehide", gone);
      end(thing);
    };
    const gone = () => {
      sent("DELETE", `/v1/jobs/${id}`).catch(() => {}); // it ends by itself too
      over(reject, new DOMException("cancelled", "AbortError"));
    };
    if (signal?.aborted) return gone();
    signal?.addEventListener("abort", gone, { once: true });
    addEventListener("pagehide", gone, { once: true });
    events.addEventListener("progress", (event) => told(JSON.parse(event.data)));
    events.addEventListener("best", (event) => told({ best: JSON.parse(event.data) }));
    events.addEventListener("result", (event) => over(resolve, resultOf(JSON.parse(event.data))));
    events.addEventListener("cancelled", () => over(reject, new DOMException("cancelled", "AbortError")));
    events.addEventListener("error", (event) => {
      // Without data it is the connection's: the browser opens it again, as long as there is a server.
      if (event.data) over(reject, refusedBy(JSON.parse(event.data)));
      else if (events.readyState === EventSource.CLOSED) over(reject, new Refused("Unreachable", "tonnage does not answer: is `tonnage web` still running?"));
    });
  });
}
