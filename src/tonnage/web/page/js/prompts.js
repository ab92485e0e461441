/* The length of the prompts that a TTFT is for: it stands wherever a TTFT does, since the prompt decides it. */
import { t } from "./words.js";

/** Such as "1,024-token prompts"; nothing where the question has no prompts. */
export function promptWords({ input_tokens: length, trace }) {
  if (trace) return t("prompts of the trace");
  return length?.value ? t("{tokens}-token prompts", { tokens: length.value.toLocaleString("en") }) : "";
}
