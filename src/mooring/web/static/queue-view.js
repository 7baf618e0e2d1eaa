/** Pending pods, grouped by the reason in plain words. */

import * as api from "./api.js";
import { atMostEvery, h, show } from "./dom.js";
import { ago, count, counted, visible } from "./format.js";
import { listen } from "./map-view.js";
import { badge, capital, empty, failure, loading, nodeLink, podLink, table } from "./widgets.js";

const SHOWN_PODS = 12;

export function view(main, { store, params, navigate, title }) {
  title("Queue");
  const note = h("p", { class: "note", role: "status" });
  const body = h("div", { class: "stack" }, loading("Reading the queue"));
  const opened = new Set((params.open ?? "").split(",").filter(Boolean));
  let request = null;

  async function load() {
    request?.abort();
    request = new AbortController();
    try {
      const queue = await api.get("/queue", {}, request.signal);
      const { hiddenNamespaces: hidden } = store.cluster;
      note.textContent = counted(queue.pending, "pending pod") + (hidden ? `, without those of ${counted(hidden, "namespace")} whose pods you may not list` : "");
      if (!queue.groups.length) show(body, empty("No pod waits", `Every pod ${hidden ? "that you may list " : ""}has a node. Pods that none can take appear here, with the reason.`));
      else show(body, queue.groups.map((group, place) => groupCard(group, place, queue.pending)));
    } catch (error) {
      if (error.name !== "AbortError") show(body, failure(error, load));
    }
  }

  function groupCard(group, place, pending) {
    const key = String(place);
    const isOpen = opened.has(key);
    const shown = isOpen ? group.pods : group.pods.slice(0, SHOWN_PODS);
    const total = group.total ?? group.pods.length;
    const id = `reason-${place}`;
    return h("section", { class: "card group", "aria-labelledby": id },
      h("div", { class: "card-head" },
        h("h2", { id }, capital(visible(group.reason || group.message))),
        h("span", { class: "group-count" }, counted(total, "pod"))),
      h("div", { class: "group-share", "aria-hidden": "true" }, h("span", { style: { width: `${(100 * total) / Math.max(1, pending)}%` } })),
      h("p", { class: "note" }, group.plugin ? badge(group.plugin) : null, " ", group.message ? h("span", { class: "message" }, visible(group.message)) : null),
      table(`Pods: ${group.reason}`, [{ title: "Pod" }, { title: "Owner" }, { title: "Priority", class: "number" }, { title: "Waits", class: "number" }, { title: "Attempts", class: "number" }, { title: "Next try" }],
        shown.map((pod) => [
          podLink(`${pod.namespace}/${pod.name}`), ownerText(pod.owner), count(pod.priority ?? 0), sinceText(pod.since),
          pod.attempts === undefined ? "–" : count(pod.attempts),
          pod.nominatedNode ? ["waits for victims on ", nodeLink(pod.nominatedNode)] : pod.nextAttempt ? ago(pod.nextAttempt) : "–",
        ])),
      total > shown.length ? more(group, key, shown.length, total) : null);
  }

  function more(group, key, shown, total) {
    if (opened.has(key)) return h("p", { class: "note" }, `${counted(total - shown, "more pod")}: find them by name in the search field.`);
    return h("button", { type: "button", class: "quiet", on: { click: () => {
      opened.add(key);
      navigate({ open: [...opened].join(",") });
      load();
    } } }, `Show ${count(group.pods.length - shown)} more`);
  }

  show(main, h("div", { class: "page-head" }, h("h1", {}, "Queue"), note), body);
  load();
  const soon = atMostEvery(load, 1000);
  const off = listen([[store, "queue", soon]]);
  return {
    dispose() {
      off();
      soon.cancel();
      request?.abort();
    },
  };
}

export function ownerText(owner) {
  if (!owner) return "–";
  return visible(typeof owner === "string" ? owner : `${owner.kind}/${owner.name}`);
}

function sinceText(since) {
  return since ? ago(since).replace(/ ago$/, "") : "–";
}
