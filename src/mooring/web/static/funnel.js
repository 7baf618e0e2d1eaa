/** Filters as a funnel: how many nodes each plugin left. */

import { h } from "./dom.js";
import { count, counted, visible } from "./format.js";

/** Steps that rejected something, as a list of bars; below, filters that reject the same nodes, and those that reject none. */
export function funnel(steps, total) {
  const nodes = total ?? steps[0]?.before ?? 0;
  const rejecting = steps.filter((each) => each.rejected > 0);
  const others = steps.filter((each) => each.rejected === 0);
  const [behind, passing] = [others.filter((each) => each.total > 0), others.filter((each) => !each.total)];
  const left = steps.length ? steps.at(-1).after : nodes;
  return h("div", { class: "funnel" },
    h("p", { class: "funnel-line", id: "funnel-line" }, funnelLine(steps, nodes)),
    h("ol", {},
      step("All nodes", nodes, nodes, null),
      rejecting.map((each) => step(each.plugin, each.after, nodes, each)),
      rejecting.length ? null : h("li", { class: "note" }, "No filter rejects a node.")),
    behind.length ? h("p", { class: "note", id: "funnel-behind" }, `${counted(behind.length, "more filter")} ${behind.length === 1 ? "rejects" : "reject"} nodes that are rejected already: ${behind.map((each) => `${visible(each.plugin)} (${count(each.total)})`).join(", ")}.`) : null,
    passing.length ? h("p", { class: "note" }, `${counted(passing.length, "filter")} ${passing.length === 1 ? "lets" : "let"} every node pass: ${passing.map((each) => each.plugin).join(", ")}.`) : null,
    h("p", { class: "hidden" }, `${counted(left, "node")} left.`));
}

/** "5,000 → 812 → 3". */
export function funnelLine(steps, nodes) {
  const counts = [nodes, ...steps.filter((each) => each.rejected > 0).map((each) => each.after)];
  return counts.map(count).join(" → ");
}

function step(name, after, nodes, rejection) {
  const share = nodes ? after / nodes : 0;
  return h("li", { class: "funnel-step" },
    h("span", { class: "funnel-name" }, visible(name || "PreFilter")),
    h("span", { class: "funnel-bar", "aria-hidden": "true" },
      rejection ? h("span", { class: "funnel-lost", style: { width: `${(100 * rejection.before) / Math.max(1, nodes)}%` } }) : null,
      h("span", { class: `funnel-left ${after === 0 ? "none" : ""}`, style: { width: `${Math.max(share * 100, after ? 0.6 : 0)}%` } })),
    h("span", { class: "number funnel-count" }, count(after)),
    rejection ? h("ul", { class: "funnel-reasons" }, rejection.reasons.slice(0, 6).map((each) => h("li", {}, h("span", { class: "number" }, `−${count(each.nodes)}`), " ", visible(each.reason)))) : null);
}
