/* A pasted config.json, read; or words of the page's own that say where it breaks off or is wrong. */
import { Refused } from "./api.js";
import { t } from "./words.js";

export const isPasted = (text) => text.trimStart().startsWith("{");

/** The config, or Refused. */
export function configOf(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Refused("InvalidInput", whyNot(text, error.message), 0, "model");
  }
}

/** Browsers say in words of their own where they stopped: a position, or a line and a column; nothing where the text ends too soon. */
function whyNot(text, message) {
  const at = placeOf(text, message);
  if (!at) return t("The pasted config ends before its last bracket is closed. Copy the whole file.");
  return t("The pasted config is not valid JSON at line {line}, column {column}.", at);
}

function placeOf(text, message) {
  const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? [];
  const position = Number(/position (\d+)/.exec(message)?.[1] ?? (line ? offset(text, Number(line), Number(column)) : text.length));
  if (position >= text.trimEnd().length) return null;
  const before = text.slice(0, position).split("\n");
  return { line: before.length, column: before.at(-1).length + 1 };
}

function offset(text, line, column) {
  return text.split("\n").slice(0, line - 1).reduce((all, each) => all + each.length + 1, column - 1);
}
