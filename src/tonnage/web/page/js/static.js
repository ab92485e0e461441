/* The page without a server: puts a transport in place of HTTP that reads lists from files beside the page, and asks the worker the rest. */
import { sendBy } from "./api.js";
import { $ } from "./dom.js";
import { t } from "./words.js";

const FILES = new Set(/* the lists that were written beside the page */ []);
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const waiting = []; // questions that the worker has not been given: the first is asked next
let asked = null; // the one that it answers
let state = "loading";
let number = 0;
let share = 0; // of what is loaded that is there

const aborted = () => new DOMException("a newer question is asked", "AbortError");

function next() {
  if (asked || state !== "ready" || waiting.length === 0) return;
  asked = waiting.shift();
  worker.postMessage(asked.request);
}

function settle({ id, code, headers, text }) {
  if (asked?.request.id === id) {
    asked.resolve({ ok: code === 200, status: code, header: (name) => headers[name.toLowerCase()] ?? null, json: async () => JSON.parse(text) });
    asked = null;
  }
  next();
}

function failed(why) {
  state = "failed";
  console.error(why);
  tell();
  for (const each of waiting.splice(0)) each.reject(new Error(why));
}

worker.onmessage = ({ data }) => {
  if (data.failed) return failed(data.failed);
  if ("progress" in data) {
    share = Math.max(share, data.progress);
    return tell();
  }
  if (!data.ready) return settle(data);
  state = "ready";
  tell();
  next();
};
worker.onerror = (event) => failed(event.message ?? "the worker did not start");

/** What the reader waits for, the first time. */
function tell() {
  const line = $("#python");
  line.hidden = state === "ready";
  const words = state === "failed" ? t("Python could not be loaded: see the browser's console.") : t("Loading Python, which answers in this browser, once: {share} %", { share: Math.floor(100 * share) });
  if (line.textContent !== words) line.textContent = words;
  line.setAttribute("aria-label", t("Loading Python"));
  line.setAttribute("aria-valuenow", Math.floor(100 * share));
  if (state === "failed") line.setAttribute("role", "alert");
}

/** A question leaves the queue when a newer one is asked; what the worker computes already is computed, and thrown away. */
function askWorker(method, path, body, signal) {
  return new Promise((resolve, reject) => {
    if (state === "failed") return reject(new Error("Python could not be loaded"));
    if (signal?.aborted) return reject(aborted());
    const mine = { request: { id: ++number, method, path, body: body === undefined ? "" : JSON.stringify(body) }, resolve, reject };
    signal?.addEventListener("abort", () => {
      const at = waiting.indexOf(mine);
      if (at >= 0) waiting.splice(at, 1);
      reject(aborted());
    });
    waiting.push(mine);
    next();
  });
}

async function listed(path, signal) {
  const address = new URL(path.slice(1), document.baseURI);
  const reply = await fetch(address, { signal });
  return { ok: reply.ok, status: reply.status, header: () => null, json: () => reply.json() };
}

/** What has no server to keep it. */
const ABSENT = /^\/v1\/(saved|jobs)\b/;

sendBy((method, path, body, signal) => {
  if (method === "GET" && FILES.has(path)) return listed(path.endsWith(".json") ? path : `${path}.json`, signal);
  if (ABSENT.test(path)) {
    const message = t("This needs `tonnage web`: a page without a server keeps nothing.");
    return Promise.resolve({ ok: false, status: 404, header: () => null, json: async () => ({ error: { kind: "NotInBrowser", message } }) });
  }
  return askWorker(method, path, body, signal);
});
tell();
