/** What would help: nearest misses, and changes with what to paste. Each was verified by deciding again. */

import { h } from "./dom.js";
import { count, counted, visible } from "./format.js";
import { badge, capital, copyable, nodeLink } from "./widgets.js";
import { written } from "./yaml.js";

export function nearestMisses(nearest) {
  return h("ul", { class: "misses" }, nearest.map((miss) => h("li", { class: "miss" },
    h("h3", {}, capital(visible(miss.reasons.join("; "))), " ", miss.plugin || miss.count ? badge(miss.plugin || "PreFilter") : null, miss.count ? h("span", { class: "note" }, counted(miss.count, "node")) : null),
    miss.missing.length ? h("p", {}, miss.onlyThis > 1 ? `${count(miss.onlyThis)} nodes fit but for this. ` : "", miss.node ? ["Nearest is ", nodeLink(miss.node), ": it"] : "It", ` ${visible(miss.missing.join(", and it "))}.`) : null,
    miss.changes.length ? changeList(miss.changes, miss.node) : h("p", { class: "note" }, "Nothing that is known here would do."))));
}

/** Alternatives, each with its manifest or command. */
export function changeList(changes, expected) {
  return h("ul", { class: "changes" }, changes.map((change) => h("li", {},
    h("p", {}, capital(visible(change.change)).replace(/\.$/, ""), change.node && change.node !== expected ? ["; then it goes to ", nodeLink(change.node)] : null,
      (change.createdAgain ?? []).map((each) => [`; ${visible(each.owner)} creates the pod again, which then `, each.node ? ["goes to ", nodeLink(each.node)] : "waits"]), "."),
    change.create ?? change.manifest ? copyable(written(change.create ?? change.manifest), `YAML: ${change.change}`) : null,
    change.command ? copyable(`${change.command}\n`, `command: ${change.change}`) : null)));
}
