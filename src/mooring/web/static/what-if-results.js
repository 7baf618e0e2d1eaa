/** The outcome of a what-if: placements, preemptions, pods that move, scores. */

import { h } from "./dom.js";
import { count, counted, duration, listed, signed, visible } from "./format.js";
import { because } from "./moves.js";
import { scoreBars } from "./score-bars.js";
import { badge, nodeLink, podLink, section, table } from "./widgets.js";

const SHOWN = 200;
const SHOWN_SCORES = 3;

/** `added` are nodes that do not exist: their names lead nowhere. */
export function results(found, { previous = null } = {}) {
  const placements = found.placements ?? [];
  const added = new Set(found.nodes ?? []);
  const nodeName = (name) => (added.has(name) ? h("span", { class: "name" }, visible(name), " ", badge("added")) : nodeLink(name));
  const before = new Map((previous?.placements ?? []).map((each) => [each.pod, each.node]));
  return [
    found.isPartial ? h("p", { class: "notes" }, "The time for one simulation ended before every pod was decided: this is a part of the outcome.") : null,
    ...(found.notes ?? []).map((note) => h("p", { class: "notes" }, visible(note))),
    section("Outcome", { id: "outcome", note: found.took === undefined ? undefined : `Decided in ${duration(found.took)}. Nothing was created.` }, tally(found)),
    section("Placements", { id: "placements" }, placementParts(placements, nodeName, before)),
    found.moved?.length ? section("Pods that would move", { id: "moved", note: counted(found.moved.length, "pod") },
      table("Pods that would move", [{ title: "Pod" }, { title: "From" }, { title: "To" }, { title: "Because of" }],
        found.moved.slice(0, SHOWN).map((each) => [podLink(each.pod), each.from ? nodeName(each.from) : "pending", each.to ? nodeName(each.to) : badge("pending", "warn"), because(each)]))) : null,
    ...scoreSections(found, nodeName),
  ];
}

export function tally(found) {
  const placements = found.placements ?? [];
  const placed = placements.filter((each) => each.node);
  const victims = new Set(placements.flatMap((each) => each.preempts ?? []));
  const entries = [
    ["Placed", placements.length ? `${count(placed.length)} of ${count(placements.length)}` : "–"],
    ["Preempted", count(victims.size)],
    ["Pending pods", found.pending ? `${count(found.pending.before)} → ${count(found.pending.after)}` : "–"],
    ["Moved", count(found.moved?.length ?? 0)],
  ];
  return h("dl", { class: "tally" }, entries.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** New pods stand last in the response, and are what the user looks for: they come first. */
function placementParts(placements, nodeName, before) {
  if (!placements.length) return h("p", { class: "note" }, "No pod was to be placed.");
  const newest = [...placements].reverse();
  const placed = newest.filter((each) => each.node);
  const waiting = newest.filter((each) => !each.node);
  return [
    placed.length ? placementTable(placed, nodeName, before) : null,
    waiting.length ? [h("h3", {}, `${counted(waiting.length, "pod")} without a node`), waitingList(waiting, nodeName)] : null,
  ];
}

/** Pods with the same message are one entry. */
function waitingList(waiting, nodeName) {
  const groups = new Map();
  for (const each of waiting) {
    const key = JSON.stringify([each.message, each.nominatedNode ?? ""]);
    if (groups.has(key)) groups.get(key).push(each);
    else groups.set(key, [each]);
  }
  return h("ul", { class: "waiting" }, [...groups.values()].slice(0, SHOWN).map((group) => h("li", {},
    h("p", {}, h("strong", {}, listed(group.map((each) => visible(each.pod)), 4))),
    group[0].preempts?.length ? h("p", {}, "Preempts ", listed(group[0].preempts.map(visible), 4), group[0].nominatedNode ? [" on ", nodeName(group[0].nominatedNode)] : null, ".") : null,
    group[0].message ? h("p", { class: "note message" }, visible(group[0].message)) : null)));
}

function placementTable(placements, nodeName, before) {
  return [
    table("Placements", [{ title: "Pod" }, { title: "Node" }, { title: "Score", class: "number" }, { title: "Runner-up" }, { title: "Ahead by", class: "number" }, { title: "Preempts" }],
      placements.slice(0, SHOWN).map((each) => [
        visible(each.pod),
        h("span", { class: before.has(each.pod) && before.get(each.pod) !== each.node ? "differs" : "" }, nodeName(each.node)),
        each.score ? count(each.score) : "–",
        runnerUp(each, nodeName), each.margin === undefined || each.margin === null ? "–" : signed(each.margin),
        each.preempts?.length ? listed(each.preempts.map(visible), 3) : "–",
      ])),
    placements.length > SHOWN ? h("p", { class: "note" }, `${counted(placements.length - SHOWN, "more pod")}.`) : null,
  ];
}

function runnerUp({ runnerUp: second }, nodeName) {
  const name = typeof second === "string" ? second : second?.node;
  return name ? nodeName(name) : "–";
}

/** Scores by pod: an object of documents, or one document. */
export function scoresByPod(scores) {
  if (!scores) return [];
  if (Array.isArray(scores)) return scores.map((each) => [each.pod ?? "", each]);
  if (Array.isArray(scores.nodes)) return [[scores.pod ?? "", scores]];
  return Object.entries(scores);
}

function scoreSections(found, nodeName) {
  const chosen = new Map((found.placements ?? []).map((each) => [each.pod, each.node]));
  return scoresByPod(found.scores).filter(([, scores]) => scores.nodes?.length).slice(0, SHOWN_SCORES).map(([pod, scores]) =>
    section(pod ? `Scores of ${visible(pod)}` : "Scores", { class: "scores-of" }, scoreBars({ ...scores, nodes: scores.nodes.slice(0, 10) }, { nodeName, chosen: chosen.get(pod) ?? scores.nodes[0].name })));
}
