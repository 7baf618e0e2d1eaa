/** Decisions as rows: what happened to which pod, when. Used live and for recordings. */

import { h } from "./dom.js";
import { clock, visible } from "./format.js";
import { badge, nodeLink, podLink } from "./widgets.js";

export const KINDS = {
  __proto__: null, // kinds come from the server
  bound: ["bound", "good"],
  refused: ["unschedulable", "warn"],
  preempted: ["preempted", "bad"],
  arrived: ["created", ""],
  deleted: ["deleted", ""],
  failed: ["failed", "bad"],
  held: ["held back", "warn"],
};

export function kindBadge(kind) {
  const [text, tone] = KINDS[kind] ?? [kind ?? "", ""];
  return badge(text, tone);
}

/** One decision as an item of a list. */
export function decisionItem(decision) {
  return h("li", { class: "decision" },
    h("time", { datetime: isoOf(decision.time), class: "note number" }, clock(decision.time)),
    kindBadge(decision.kind),
    h("span", { class: "decision-text" },
      podLink(podKey(decision.pod)),
      decision.node ? [" → ", nodeLink(decision.node)] : null,
      decision.message ? h("span", { class: "note message" }, visible(decision.message)) : null));
}

export function podKey(pod) {
  return typeof pod === "string" ? pod : `${pod.namespace}/${pod.name}`;
}

function isoOf(time) {
  return typeof time === "number" ? new Date(time * 1000).toISOString() : String(time ?? "");
}
