/* Figures that an answer states without a TERM, as TERMs, so that their numbers open cards too. */
import { figure, offer } from "./card.js";
import { t } from "./words.js";

/** Offers what stands in the verdict and below the breakdown, under "page". */
export function offerAll(document) {
  const { needed_bytes: need, usable_bytes: usable, band } = document.verdict;
  const { memory } = document;
  const offered = { low: edge(document, t("low end of the error band"), 0, band), high: edge(document, t("high end of the error band"), 1, band) };
  if (usable !== null) {
    offered.usable = usableOf(document, usable);
    document.ranks.forEach((rank, i) => (offered[`free ${i}`] = rank.value > usable ? less(t("short by"), rank, offered.usable) : less(t("free"), offered.usable, rank)));
    if (need !== null) Object.assign(offered, { spare: less(t("to spare"), offered.usable, memory), over: less(t("over the usable line"), memory, offered.usable) });
  }
  offer("page", offered);
}

function usableOf({ question: { usable_memory: source, reserve_bytes: reserve } }, usable) {
  return figure(t("usable"), usable, "bytes", {
    basis: "measured",
    text: t("what the runtime gives programs, less what is kept free"),
    source: source?.why ?? "",
    children: reserve?.value ? [figure(t("kept free"), reserve.value, "bytes")] : [],
  });
}

function less(name, whole, part) {
  return figure(name, whole.value - part.value, "bytes", { combine: "difference", basis: part.basis, children: [whole, part] });
}

function edge({ memory, question }, name, index, band) {
  return band && figure(name, band[index], "bytes", { combine: "band", basis: "measured", text: String(question.error_band?.value ?? ""), source: question.error_band?.why ?? "", children: [memory] });
}
