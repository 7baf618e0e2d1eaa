/** A node's page: what runs there, which pending pods it rejects and why, and what happened. */

import { actions, cordon } from "./actions.js";
import * as api from "./api.js";
import { KINDS } from "./decision-list.js";
import { atMostEvery, h, show } from "./dom.js";
import { ago, amount, clock, count, counted, percent, visible } from "./format.js";
import { listen } from "./map-view.js";
import { ownerText } from "./queue-view.js";
import { address } from "./routes.js";
import { badge, bar, empty, facts, failure, loading, nodeLink, podLink, section, table } from "./widgets.js";

export function view(main, { store, parts, title }) {
  const name = parts[1];
  title(name);
  const body = h("div", { class: "stack" }, loading("Reading the node"));
  let [request, shown] = [null, ""];

  async function load() {
    request?.abort();
    request = new AbortController();
    try {
      const found = await api.get(api.nodePath(name), {}, request.signal);
      const key = JSON.stringify({ ...found, refused: found.refused.map(({ time: _, ...each }) => each) });
      if (key === shown) return;
      shown = key;
      show(body, content(found, store));
    } catch (error) {
      if (error.name === "AbortError") return;
      shown = "";
      show(body, h("h1", { class: "hidden" }, visible(name)), failure(error, load, nodeLink));
    }
  }

  show(main, body);
  load();
  const soon = atMostEvery(load, 1500);
  const off = listen([[store, "nodes", soon], [store, "queue", soon]]);
  return {
    dispose() {
      off();
      soon.cancel();
      request?.abort();
    },
  };
}

function content(node, store) {
  const isCordoned = Boolean(node.unschedulable);
  const problems = (node.conditions ?? []).filter((each) => (each.type === "Ready") !== (each.status === "True"));
  return [
    h("header", { class: "node-head" },
      h("p", { class: "crumbs" }, h("a", { href: "#/map" }, "Nodes"), node.zone ? ` / ${visible(node.zone)}` : ""),
      h("h1", {}, visible(node.name), " ", badge(node.ready === false ? "not ready" : "ready", node.ready === false ? "bad" : "good"), isCordoned ? badge("cordoned", "warn") : null),
      h("p", { class: "lead", id: "summary" }, summary(node, isCordoned)),
      problems.length ? facts(problems.map((each) => [visible(each.type), `${visible(each.status)}${each.message ? `: ${visible(each.message)}` : ""}`])) : null,
      h("div", { class: "row no-print" },
        h("a", { class: "button", href: address(["what-if"], { cordon: node.name }) }, "What if it were cordoned…"),
        actions(store) ? cordon(node.name, isCordoned) : null)),
    section("Resources", { id: "resources" }, h("div", { class: "gauges" }, gauges(node))),
    node.taints.length ? section("Taints", { id: "taints" }, h("ul", { class: "chips" }, node.taints.map((taint) => h("li", {}, visible(taint))))) : null,
    section("What runs here", { id: "pods", note: podNote(node) }, node.pods.length ? podTable(node) : empty("No pods", "Nothing runs on this node.")),
    section("What it rejects", { id: "refused", note: "Pending pods, and the filter that keeps each from this node." },
      node.refused.length ? table("Pending pods that this node rejects", [{ title: "Pod" }, { title: "Plugin" }, { title: "Reason" }],
        node.refused.map((each) => [podLink(`${each.namespace}/${each.name}`), badge(each.plugin || "PreFilter"), visible(each.reason)]))
        : h("p", { class: "note" }, "No pending pod is rejected here.")),
    section("History", { id: "history", note: "What was observed, the newest first." },
      node.history.length ? h("ol", { class: "timeline" }, node.history.slice(0, 100).map((each) => h("li", { class: KINDS[each.what]?.[1] === "good" ? "good" : "plain" },
        h("time", { class: "number" }, clock(each.time)), badge(...(KINDS[each.what] ?? [each.what])), each.pod ? podLink(each.pod) : null,
        each.message ? h("span", { class: "note message" }, visible(each.message)) : null)))
        : h("p", { class: "note" }, "Nothing was observed yet.")),
    section("Labels", { id: "labels" }, h("ul", { class: "chips" }, Object.entries(node.labels ?? {}).map(([key, value]) => h("li", {}, visible(value ? `${key}=${value}` : key))))),
  ];
}

function summary(node, isCordoned) {
  const free = ["cpu", "memory"].filter((each) => node.allocatable[each]).map((each) => `${amount(each, node.allocatable[each] - (node.requested[each] ?? 0))} of ${each}`);
  const room = free.length ? `${free.join(" and ")} ${free.length > 1 ? "are" : "is"} free` : "Its resources are not known";
  const cordoned = isCordoned ? " It is cordoned: no new pods come here." : "";
  const pods = node.pods.length + (node.hiddenPods ?? 0);
  return `${counted(pods, "pod")} ${pods === 1 ? "runs" : "run"} here. ${room}.${cordoned}`;
}

function gauges(node) {
  return Object.entries(node.allocatable).filter(([, total]) => total > 0).map(([resource, total]) => {
    const taken = node.requested[resource] ?? 0;
    return h("div", { class: "gauge" },
      h("div", { class: "row" }, h("strong", {}, visible(resource)), h("span", { class: "number" }, percent(taken / total))),
      bar(taken / total),
      h("p", { class: "note number" }, `${amount(resource, taken)} of ${amount(resource, total)} requested`));
  });
}

function podNote(node) {
  return node.hiddenPods ? `${counted(node.hiddenPods, "pod")} of namespaces that you may not list.` : undefined;
}

function podTable(node) {
  return table("Pods on this node", [{ title: "Pod" }, { title: "Owner" }, { title: "Phase" }, { title: "Priority", class: "number" }, { title: "cpu", class: "number" }, { title: "memory", class: "number" }, { title: "Bound", class: "number" }],
    node.pods.map((pod) => [podLink(`${pod.namespace}/${pod.name}`), ownerText(pod.owner), visible(pod.phase), count(pod.priority ?? 0),
      amount("cpu", pod.requests?.cpu), amount("memory", pod.requests?.memory), pod.since ? ago(pod.since) : "–"]));
}
