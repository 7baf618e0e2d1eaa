/** A pod's page: the reason in plain words first, then filters, scores, what would help, and what happens next. */

import * as api from "./api.js";
import { actions, deletePod } from "./actions.js";
import { nearestMisses } from "./changes.js";
import { atMostEvery, h, show } from "./dom.js";
import { ago, clock, count, counted, listed, visible } from "./format.js";
import { funnel } from "./funnel.js";
import { listen } from "./map-view.js";
import { address } from "./routes.js";
import { scoreBars, scoredSentence } from "./score-bars.js";
import { onTheme } from "./theme.js";
import { whyNotForm } from "./why-not.js";
import { badge, capital, facts, failure, loading, nodeLink, podLink, section, table } from "./widgets.js";

const QUEUES = {
  __proto__: null,
  active: "it is tried as soon as the scheduler gets to it",
  backoff: "it is tried again when its backoff ends",
  unschedulable: "it is tried again when one of the events below happens, or after five minutes",
  gated: "a plugin keeps it out of the queue",
  "in flight": "it is being placed at this moment",
};

export function view(main, { store, parts, params, navigate, title }) {
  const [, namespace, name] = parts;
  title(`${namespace}/${name}`);
  const body = h("div", { class: "stack" }, loading("Deciding the pod again"));
  const state = { nodes: params.nodes, whyNot: params["why-not"] };
  let [request, shown] = [null, ""];

  async function load() {
    request?.abort();
    request = new AbortController();
    try {
      const found = await api.get(api.podPath(namespace, name), { nodes: state.nodes }, request.signal);
      const key = JSON.stringify([found, document.documentElement.dataset.theme]);
      // A page that has not changed is left alone: a reader may have selected text in it.
      if (key === shown) return;
      shown = key;
      // What was asked about a node stays while the rest is drawn anew.
      show(body, content(found));
    } catch (error) {
      if (error.name === "AbortError") return;
      shown = "";
      show(body, h("h1", { class: "hidden" }, visible(`${namespace}/${name}`)), failure(error, load, (near) => podLink(near.includes("/") ? near : `${namespace}/${near}`)));
    }
  }

  const ask = section("Why not another node?", { id: "why-not" }, whyNotForm(store, namespace, name, state.whyNot, (node) => {
    state.whyNot = node;
    navigate({ nodes: state.nodes, "why-not": node });
  }));

  function content(found) {
    const recomputed = found.recomputed ?? {};
    // What a scheduler decided that does not serve it any more explains nothing.
    const decision = isUnserved(found) ? {} : recomputed.decision ?? found.decision ?? {};
    const all = found.scores?.nodes?.length < found.scores?.scoredNodes && state.nodes !== "all"
      ? h("button", { type: "button", class: "quiet", on: { click: () => {
        state.nodes = "all";
        navigate({ nodes: "all", "why-not": state.whyNot });
        load();
      } } }, "All nodes") : null;
    return [
      heading(found, recomputed, decision, store),
      found.funnel?.length ? section("Filters", { note: recomputedNote(found, recomputed), id: "filters" }, funnel(found.funnel, decision.nodes)) : null,
      found.scores?.nodes?.length ? section("Scores", { note: scoredSentence(found.scores), id: "scores" },
        scoreBars(found.scores, { chosen: decision.node ?? found.scores.nodes[0].name, own: found.node, more: all })) : null,
      recomputed.nearest?.length ? section("What would help?", { note: "Each change was verified by deciding again.", id: "nearest" }, nearestMisses(recomputed.nearest)) : null,
      preemption(decision),
      ask,
      waits(found),
      attempts(found),
      message(found, decision),
    ];
  }

  show(main, body);
  load();
  const soon = atMostEvery(load, 2000);
  const off = listen([
    [store, "decision", (event) => JSON.stringify(event.detail?.pod ?? "").includes(name) && soon()],
    [store, "queue", soon],
    [onTheme, "theme", load],
  ]);
  return {
    dispose() {
      off();
      soon.cancel();
      request?.abort();
    },
  };
}

function heading(found, recomputed, decision, store) {
  const [namespace, name] = [found.pod.split("/")[0], found.pod.split("/").slice(1).join("/")];
  return h("header", { class: "pod-head" },
    h("p", { class: "crumbs" }, h("a", { href: "#/queue" }, "Pods"), " / ", visible(namespace)),
    h("h1", {}, visible(name), " ", badge(found.node ? "bound" : "pending", found.node ? "good" : "warn"), found.phase && found.phase !== "Pending" ? badge(found.phase) : null),
    h("p", { class: "lead", id: "summary" }, ...firstLine(found, recomputed, decision)),
    facts([
      ["Scheduler", visible(found.profile)],
      found.queue && found.queue !== "absent" && !isUnserved(found) ? ["Queue", `${found.queue}${QUEUES[found.queue] ? `: ${QUEUES[found.queue]}` : ""}`] : null,
      found.nextAttempt ? ["Next try", `${ago(found.nextAttempt)} (${clock(found.nextAttempt)})`] : null,
      decision.nodes !== undefined ? ["Feasible", `${count(decision.feasibleNodes ?? 0)} of ${counted(decision.nodes, "node")}`] : null,
    ]),
    h("div", { class: "row no-print" },
      h("a", { class: "button", href: address(["what-if"], { pod: found.pod }) }, "What if…"),
      actions(store) ? deletePod(namespace, name) : null));
}

/** Whether schedulers run here, and none of them takes the pod. */
function isUnserved(found) {
  return !found.node && found.servedProfiles?.length > 0 && !found.servedProfiles.includes(found.profile);
}

/** The first sentence, in plain words. */
function firstLine(found, recomputed, decision) {
  if (found.notRecomputed) return [`${capital(visible(found.summary ?? ""))} It was not decided again: ${visible(found.notRecomputed)}`];
  if (!found.node) {
    if (found.summary) return ["It waits for a node: ", visible(found.summary), "."];
    if (decision.node) return ["It waits for a node, and would go to ", nodeLink(decision.node), " now: ", `${count(decision.feasibleNodes)} of ${counted(decision.nodes, "node")} ${decision.feasibleNodes === 1 ? "is" : "are"} feasible.`];
    return ["It waits for a node."];
  }
  const where = recomputed.ownNode?.isGone ? ["It is bound to ", visible(found.node), ", which does not exist. "] : ["It runs on ", nodeLink(found.node), ". "];
  if (found.waited) where.push(`${capital(visible(found.waited))}. `);
  return [...where, ...boundSentence(found, recomputed, decision), ...sinceSentence(found, recomputed.since)];
}

function boundSentence(found, { ownNode: own, runnerUp }, decision) {
  const sentences = [];
  if (own && !own.isGone) sentences.push(`That node is not feasible any more (${visible([own.plugin, ...(own.reasons ?? [])].filter(Boolean).join(": "))}). `);
  if (decision.node === undefined) return sentences;
  if (decision.node === null) return [...sentences, "Decided again, no node is feasible. "];
  if (decision.feasibleNodes === 1 && decision.node === found.node) return [...sentences, "It is the only feasible node. "];
  if (own || !runnerUp) return [...sentences, "Decided again, it would go to ", nodeLink(decision.node), ". "];
  const others = runnerUp.alike > 1 ? ` (and ${count(runnerUp.alike - 1)} more)` : "";
  if (runnerUp.margin > 0) return [...sentences, "The runner-up is ", nodeLink(runnerUp.node), `${others}, ${counted(runnerUp.margin, "point")} behind. `];
  if (runnerUp.margin === 0) return [...sentences, nodeLink(runnerUp.node), `${others} has the same score: among equals the scheduler takes turns. `];
  return [...sentences, "Decided again, it would go to ", nodeLink(runnerUp.node), `, ${counted(-runnerUp.margin, "point")} ahead. `];
}

function sinceSentence(found, since) {
  if (!since) return [];
  const { newNodeCount, newPods } = since;
  const bound = since.boundAt ? `Since it was bound ${ago(since.boundAt)}, ` : "Since it was bound, ";
  const alike = since.podsOfTheSameSecond;
  const sameSecond = alike ? ` In the same second ${counted(alike, "more pod")} ${alike === 1 ? "was" : "were"} bound.` : "";
  if (!newNodeCount && !newPods) return [`${bound}no node was added and no pod bound.${sameSecond}`];
  const nodes = newNodeCount ? `${counted(newNodeCount, "node")} (${listed(since.newNodes.map(visible), 3, newNodeCount)}) ${newNodeCount === 1 ? "was" : "were"} added` : "no node was added";
  const pods = newPods ? `${counted(newPods, "pod")} ${newPods === 1 ? "was" : "were"} bound, ${count(since.newPodsHere)} of them here` : "no pod was bound";
  return [`${bound}${nodes} and ${pods}.${sameSecond}`];
}

function recomputedNote(found, recomputed) {
  const notes = [];
  if (recomputed.isOtherScheduler) notes.push(`The pod names scheduler ${visible(found.profile)}; this is by the rules of ${visible(recomputed.profile)}.`);
  if (recomputed.lacksExtenders) notes.push("The extenders of the configuration were not called.");
  if (recomputed.lacksGroup) notes.push("The other members of its group were not tried with it.");
  return notes.join(" ") || `Decided again${found.node ? " as if it were not bound" : ""}, on the cluster ${found.isFile ? "of the file" : "as it is now"}.`;
}

function preemption(decision) {
  const { plan, noRoom } = decision;
  if (!plan && !noRoom?.length) return null;
  if (!plan) {
    return section("Preemption", { note: "Evicting pods of lower priority would not help.", id: "preemption" },
      table("Why preemption does not help", [{ title: "Reason" }, { title: "Nodes", class: "number" }, { title: "Among them" }],
        noRoom.map((group) => [visible(group.reasons.join("; ")), count(group.count), listed(group.nodes.map(visible), 4, group.count)])));
  }
  const others = (plan.candidates ?? []).filter((each) => each.node !== plan.nominate);
  return section("Preemption", { id: "preemption" },
    h("p", { class: "lead" }, `To make room, ${counted(plan.evict.length, "pod")} of lower priority must go: `, plan.evict.slice(0, 20).map((key, place) => [place ? ", " : "", podLink(key)]), ". ",
      plan.nominate ? [nodeLink(plan.nominate), " is kept for it."] : "No node is kept for it."),
    others.length ? [h("p", { class: "note" }, `It is the best of ${counted(plan.candidateCount, "node")}. Others:`),
      table("Other candidates for preemption", [{ title: "Node" }, { title: "Victims" }, { title: "Protected by budgets", class: "number" }],
        others.slice(0, 10).map((each) => [nodeLink(each.node), listed(each.victims.map(visible), 4), count(each.budgetViolations)]))] : null);
}

function waits(found) {
  const waitsFor = found.decision?.waitsFor ?? found.recomputed?.decision?.waitsFor ?? [];
  const gating = found.gating ?? found.recomputed?.gating;
  if (found.node || isUnserved(found) || (!waitsFor.length && !gating)) return null;
  const isPermit = found.queue === "waiting on permit";
  return section("What it waits for", { id: "waits" },
    gating ? h("p", {}, badge(gating.plugin), ` keeps it out of the queue: ${visible((gating.reasons ?? []).join("; "))}`) : null,
    isPermit ? h("ul", {}, waitsFor.map((wait) => h("li", {}, badge(wait.plugin), " allows it on ", nodeLink(wait.node), ` until ${clock(wait.deadline)}`)))
      : waitsFor.length ? [h("p", { class: "note" }, "It is tried again when one of these happens:"),
        table("Events that requeue the pod", [{ title: "Resource" }, { title: "Events" }, { title: "Registered by" }],
          waitsFor.map((wait) => [visible(wait.resource), visible((wait.actions ?? []).join(", ")), badge(wait.plugin)]))] : null);
}

function attempts(found) {
  const list = found.attempts ?? [];
  if (!list.length) return null;
  const total = list.reduce((sum, each) => sum + (each.attempts ?? 1), 0);
  return section("Attempts", { note: `${counted(total, "attempt")} recorded by the scheduler, the newest first.`, id: "attempts" },
    h("ol", { class: "timeline" }, [...list].reverse().map((each) => h("li", { class: each.node ? "good" : "" },
      h("time", { class: "number" }, clock(each.time), each.lastTime && each.lastTime !== each.time ? ` – ${clock(each.lastTime)}` : ""),
      each.attempts > 1 ? badge(`${count(each.attempts)} times`) : null,
      Object.entries(each.startedBy ?? {}).map(([event, times]) => badge(`after ${event}${times > 1 ? ` ×${count(times)}` : ""}`)),
      h("span", { class: "message" }, each.node ? ["bound to ", nodeLink(each.node)] : visible(each.message ?? ""))))));
}

function message(found, decision) {
  const text = decision.message ?? found.condition?.message;
  const notes = found.recomputed?.notes ?? [];
  if (!text && !notes.length) return null;
  return section("The scheduler's message", { id: "message" }, text ? h("p", { class: "message" }, visible(text)) : null,
    notes.map((note) => h("p", { class: "note" }, visible(note))));
}
