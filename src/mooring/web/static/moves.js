/** Why a pod would go elsewhere, in one cell. */

import { h } from "./dom.js";
import { visible } from "./format.js";
import { badge } from "./widgets.js";

/** What moved a pod: the plugin, and its sentence where there is one. */
export function because(move) {
  if (!move || !(move.plugin || move.explanation || move.cause || move.preemptedBy)) return "–";
  const text = move.explanation ?? move.cause ?? (move.preemptedBy ? `preempted by ${move.preemptedBy}` : "");
  return [move.plugin ? badge(move.plugin) : null, " ", text ? h("span", { class: "note" }, visible(text)) : null];
}
