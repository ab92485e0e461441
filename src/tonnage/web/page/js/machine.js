/* What the catalogue says of the accelerator that was asked about. The list comes once; until it is here nothing is said. */
import { accelerators } from "./api.js";

let byName = new Map();
let aliases = new Map(); // another name -> the name in the catalogue
let byNode = new Map();

/** Asks for the catalogue; true when it is there. */
export async function learn() {
  const catalogue = await accelerators();
  byName = new Map(catalogue.accelerators.map((each) => [plain(each.name), each]));
  byNode = new Map(catalogue.nodes.map((each) => [plain(each.name), each]));
  aliases = new Map(Object.entries(catalogue.aliases).map(([alias, name]) => [plain(alias), plain(name)]));
}

/** How the catalogue compares names: case, blanks and underscores do not matter. */
const plain = (name) => name.toLowerCase().replaceAll("_", " ").trim().split(/\s+/).join("-");

const named = (name) => byName.get(plain(name)) ?? byName.get(aliases.get(plain(name)));

export const all = () => [...byName.values()];

/** The nodes of the catalogue: machines with accelerators of one kind. */
export const nodes = () => [...byNode.values()];

/** The accelerator of a cluster's text, such as 8x8xH100-SXM-80GB, or undefined: a node, a file, this machine. */
export const accelerator = (on) => named(machineOf(on).name);

/** What the driver reports of the answer's accelerator, in bytes, or null. */
export function capacityOf(document) {
  const found = accelerator(String(document.question.on?.value ?? ""));
  return found?.memory?.reported_bytes ?? found?.memory?.nominal_bytes ?? null;
}

/** {nodes, each, name} of a cluster's text; "H100" is one. */
export function machineOf(on) {
  const [, first, second, name] = /^(?:(\d+)\s*[x×]\s*)?(?:(\d+)\s*[x×]\s*)?(.*)$/iu.exec(on.trim());
  const [nodes, each] = second === undefined ? [1, first ?? 1] : [first, second];
  return { nodes: Number(nodes), each: Number(each), name, counted: first !== undefined };
}

/** The text of a cluster. */
export function clusterText(nodes, each, name) {
  if (name === "local") return name;
  return [...(nodes > 1 ? [nodes] : []), ...(nodes > 1 || each > 1 ? [each] : []), name].join("x");
}

const ONE = /:\s*0*1$|^0*1\s|x\s*0*1$|^0*1\s*[*×x]|^local$/iu; // ways to write one of something, and this machine, which takes no number

/** The cluster of an answer with its number said: where it is not, tonnage compare looks for the fewest that hold the model. */
export function inFull({ question: { on }, document: { question } }) {
  return question.accelerators?.value === 1 && !ONE.test(on.trim()) ? `1x${on.trim()}` : on;
}
