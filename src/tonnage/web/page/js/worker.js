/* The Python of the page without a server: one worker, which loads Pyodide and tonnage from files beside the page, and answers one request after another.
   In: {id, method, path, body}. Out: {progress}, a share, {ready}, {failed}, or {id, code, headers, text}. */
import { loadPyodide } from "../pyodide/pyodide.mjs";

const here = (path) => new URL(`../${path}`, import.meta.url).href;

/* How far it is: bytes that have come of those that will, and the steps after them, which take about as long again. */
const STEPS = ["started", "unpacked", "begun"];
const OF_BYTES = 0.55;
let wanted = 0; // bytes; 0 as long as nobody knows
let come = 0;
let steps = 0;

function tell() {
  const read = wanted ? Math.min(come / wanted, 1) : 0;
  postMessage({ progress: OF_BYTES * read + (1 - OF_BYTES) * (steps / STEPS.length) });
}

/* Pyodide reads its own files by itself: all that is fetched passes here. */
const plain = self.fetch.bind(self);
self.fetch = async (...asked) => {
  const reply = await plain(...asked);
  if (!reply.ok || !reply.body) return reply;
  const counting = new TransformStream({
    transform(chunk, out) {
      come += chunk.byteLength;
      tell();
      out.enqueue(chunk);
    },
  });
  return new Response(reply.body.pipeThrough(counting), { status: reply.status, statusText: reply.statusText, headers: reply.headers });
};

async function archive(path) {
  const reply = await fetch(here(path));
  if (!reply.ok) throw new Error(`${path} is not there (status ${reply.status})`);
  return reply.arrayBuffer();
}

function done() {
  steps += 1;
  tell();
}

async function load() {
  const { names, bytes } = await (await plain(here("python/packages.json"))).json();
  wanted = bytes;
  const [python, ...archives] = await Promise.all([loadPyodide({ indexURL: here("pyodide/"), packages: [] }), ...names.map((name) => archive(`python/${name}`))]);
  done();
  names.forEach((name, at) => python.unpackArchive(archives[at], name.endsWith(".whl") ? "wheel" : "zip"));
  done();
  const browser = python.pyimport("tonnage.web.static.browser");
  browser.begin();
  done();
  return browser;
}

let browser;
const loading = load().then(
  (made) => {
    browser = made;
    postMessage({ ready: true });
  },
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, method, path, body } }) => {
  await loading;
  if (!browser) return;
  try {
    const reply = browser.answer(method, path, body ?? "");
    const [code, headers, bytes] = [reply.code, reply.headers.toJs({ dict_converter: Object.fromEntries }), reply.body.toJs()];
    reply.destroy();
    postMessage({ id, code, headers, text: new TextDecoder().decode(bytes) });
  } catch (error) {
    // A crash of the answer: the page says so, and goes on.
    console.error(error);
    postMessage({ id, code: 500, headers: {}, text: JSON.stringify({ error: { kind: "Internal", message: "this question failed; the browser's console says why." } }) });
  }
};
