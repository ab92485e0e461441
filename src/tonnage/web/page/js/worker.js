/* The Python of the page without a server: one worker, which loads Pyodide and tonnage from files beside the page, and answers one request after another.
   In: {id, method, path, body}. Out: {ready}, {failed}, or {id, code, headers, text}. */
import { loadPyodide } from "../pyodide/pyodide.mjs";

const here = (path) => new URL(`../${path}`, import.meta.url).href;

async function archive(path) {
  const reply = await fetch(here(path));
  if (!reply.ok) throw new Error(`${path} is not there (status ${reply.status})`);
  return reply.arrayBuffer();
}

async function load() {
  const listed = await (await fetch(here("python/packages.json"))).json();
  const [python, ...archives] = await Promise.all([loadPyodide({ indexURL: here("pyodide/"), packages: [] }), ...listed.map((name) => archive(`python/${name}`))]);
  listed.forEach((name, at) => python.unpackArchive(archives[at], name.endsWith(".whl") ? "wheel" : "zip"));
  const browser = python.pyimport("tonnage.web.browser");
  browser.begin();
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
