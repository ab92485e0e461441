/* The question that the page asks now, to be saved; and the page's state of a question that was saved. */
import { options } from "./api.js";
import { inputsOf, question as planned } from "./parts/plan.js";
import { question, state, VERB } from "./state.js";

// Forms of an answer that the page has in places of their own.
const OTHER_FORMS = ["frontier", "for_my_machine", "simulate", "trace", "percentile"];

/** {verb, question} of what the page shows; null where it asks nothing. Throws Refused where a pasted config is no JSON. */
export async function asked() {
  const { tab } = state;
  if (!state.values.model || (tab !== "plan" && !VERB[tab])) return null;
  if (tab === "plan") return { verb: "plan", question: planned() };
  const rows = await options(VERB[tab]);
  return { verb: VERB[tab], question: question(tab, new Set(rows.map((each) => each.name))) };
}

/** {tab, values} of a saved plan; null where the page has no inputs for its question. */
export function stateOf({ verb, question: asked }) {
  if (verb === "plan") return written("plan", inputsOf(asked));
  if (verb === "serve") return written("serve", asked);
  if (verb === "train") return written("method" in asked ? "tune" : "train", asked);
  return null;
}

function written(tab, asked) {
  if (!asked || OTHER_FORMS.some((name) => name in asked)) return null;
  const { model, ...others } = asked;
  if (Object.values(others).some((value) => typeof value === "object")) return null;
  const texts = Object.entries(others).map(([name, value]) => [name, String(value)]);
  return { tab, values: { ...(model ? { model: typeof model === "object" ? JSON.stringify(model) : model } : {}), ...Object.fromEntries(texts) } };
}
