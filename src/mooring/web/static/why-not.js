/** Why not this node? Every filter's verdict and every score beside the chosen node, and the smallest change. */

import * as api from "./api.js";
import { changeList } from "./changes.js";
import { h, show } from "./dom.js";
import { count, signed, visible } from "./format.js";
import { inColumns, scoreBars } from "./score-bars.js";
import { badge, failure, loading, nodeLink, table } from "./widgets.js";

const VERDICTS = { __proto__: null, passes: "good", rejects: "bad", skips: "" };

/** A form that asks about one node; `onChoice(node)` keeps it in the address. */
export function whyNotForm(store, namespace, name, chosenNode, onChoice) {
  const answer = h("div", { id: "why-not-answer" });
  const input = h("input", { id: "why-not-node", type: "text", list: "why-not-nodes", value: chosenNode ?? "", autocomplete: "off", spellcheck: "false", placeholder: "name of a node", required: true });
  // A browser slows down with thousands of options; those that match are enough.
  const options = h("datalist", { id: "why-not-nodes" });
  const suggest = () => {
    const text = input.value.toLowerCase();
    const names = (store.nodes?.names ?? []).filter((each) => each.toLowerCase().includes(text)).slice(0, 50);
    show(options, names.map((each) => h("option", { value: each })));
  };
  input.addEventListener("input", suggest);
  suggest();
  let request = null;

  async function ask(node) {
    request?.abort();
    request = new AbortController();
    show(answer, loading(`Deciding about ${node}`));
    try {
      const found = await api.get(`${api.podPath(namespace, name)}/why-not/${encodeURIComponent(node)}`, {}, request.signal);
      show(answer, whyNotAnswer(found));
    } catch (error) {
      if (error.name !== "AbortError") show(answer, failure(error, null, (near) => h("button", { type: "button", class: "link", on: { click: () => choose(near) } }, near)));
    }
  }

  function choose(node) {
    input.value = node;
    onChoice(node);
    ask(node);
  }

  if (chosenNode) ask(chosenNode);
  return h("div", {},
    h("form", { class: "row", on: { submit: (event) => {
      event.preventDefault();
      choose(input.value.trim());
    } } }, h("label", { for: "why-not-node" }, "Why not on"), input, options, h("button", { type: "submit" }, "Show")),
    answer);
}

export function whyNotAnswer(found) {
  const rows = found.scores?.nodes ?? [];
  return h("div", { class: "stack why-not" },
    h("p", { class: "lead" }, ...sentence(found)),
    h("div", { class: "columns" },
      h("div", {}, h("h3", {}, "Filters"), table(`Filters on ${found.node}`, [{ title: "Plugin" }, { title: "Verdict" }, { title: "Reason" }],
        found.filters.map((each) => [visible(each.plugin), badge(each.verdict, VERDICTS[each.verdict]), visible((each.reasons ?? []).join("; "))]))),
      rows.length ? h("div", {}, h("h3", {}, "Scores"), found.isFeasible ? null : h("p", { class: "note" }, "As if the filters had accepted it."),
        scoreBars(inColumns(rows), { chosen: found.chosen }), scoreDifference(rows)) : null),
    found.changes?.length ? h("div", {}, h("h3", {}, `What would bring it to ${visible(found.node)}?`), changeList(found.changes, found.node)) : found.changes ? h("p", { class: "note" }, "No change that is known here would bring it there.") : null);
}

function sentence(found) {
  const chosen = found.chosen ? ["; it would go to ", nodeLink(found.chosen), "."] : "; no node is feasible.";
  if (found.runsOn === found.node) return ["It runs on ", nodeLink(found.node), "."];
  if (found.gating && found.isFeasible) return [badge(found.gating.plugin), ` keeps it out of the queue (${visible(found.gating.reasons.join("; "))}). Without that it would go to `, nodeLink(found.chosen), "."];
  if (found.isFeasible && found.chosen === found.node) return ["It would go to ", nodeLink(found.node), "."];
  if (found.isFeasible) return [nodeLink(found.node), " is feasible, and another node has more points", chosen];
  const missing = (found.missing ?? []).join(", and it ");
  return ["It cannot run on ", nodeLink(found.node), missing ? `: it ${visible(missing)}` : "", chosen];
}

function scoreDifference(rows) {
  if (rows.length < 2) return null;
  const [asked, other] = rows;
  return h("p", {}, `${visible(asked.node)} has ${count(asked.total)} points, ${visible(other.node)} ${count(other.total)}: ${signed(asked.total - other.total)}.`);
}
