/** What surrounds every view: name of the cluster, navigation, search, connection and colour scheme. */

import * as api from "./api.js";
import { announce, debounced, h, show } from "./dom.js";
import { clock, count, counted, visible } from "./format.js";
import { address } from "./routes.js";
import * as theme from "./theme.js";
import { icon } from "./widgets.js";

const VIEWS = [
  ["map", "Map", "map"],
  ["queue", "Queue", "queue"],
  ["live", "Live", "live"],
  ["what-if", "What-if", "tune"],
  ["compare", "Compare", "compare"],
  ["time", "Time", "clock"],
];
const STATUS = {
  loading: ["Connecting", ""],
  live: ["Live", "good"],
  static: ["File", ""],
  lost: ["Offline", "bad"],
};
const THEMES = { auto: ["As the system", "auto"], light: ["Light", "sun"], dark: ["Dark", "moon"] };
const FOUND = 8;

/** Fills the header; returns what changes it. */
export function makeFrame(top, store) {
  const links = new Map();
  const pending = h("span", { class: "count", hidden: true });
  const nav = h("nav", { "aria-label": "Views" }, VIEWS.map(([key, text, drawing]) => {
    const link = h("a", { href: `#/${key}` }, icon(drawing), h("span", {}, text), key === "queue" ? pending : null);
    links.set(key, link);
    return link;
  }));
  const name = h("span", { class: "cluster-name" });
  const status = h("span", { class: "status", id: "connection" });
  show(top,
    h("a", { href: "#/map", class: "brand" }, icon("anchor"), h("span", {}, "Mooring")),
    name, nav, searchField(store), status, themeSwitch());

  const showCluster = () => {
    const { counts, name: called } = store.cluster;
    name.textContent = called ?? "";
    name.title = `${counted(counts.nodes, "node")}, ${counted(counts.pods, "pod")}`;
    show(pending, count(counts.pending), h("span", { class: "hidden" }, counts.pending === 1 ? " pending pod" : " pending pods"));
    pending.hidden = !counts.pending;
    showFoot(store.cluster);
  };
  store.addEventListener("cluster", showCluster);

  return {
    select(view) {
      const chosen = view === "nodes" ? "map" : view === "pods" ? "queue" : view;
      for (const [key, link] of links) {
        if (key === chosen) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    },
    showStatus() {
      const [text, tone] = STATUS[store.status];
      const source = store.status === "static" ? { recording: "Recording", snapshot: "Snapshot", file: "File" }[store.cluster?.source] ?? text : text;
      if (status.textContent !== source) show(status, h("span", { class: "dot", "aria-hidden": "true" }), source);
      status.className = `status ${tone}`;
    },
  };
}

/** Which configuration the decisions of the page are taken with, and where it is shared, who is signed in. */
function showFoot({ configuration, user, signedIn }) {
  const foot = document.getElementById("foot");
  const { since, problem } = configuration ?? {};
  const newer = problem ? ` A newer one cannot be used here: ${visible(problem)}` : "";
  const text = configuration ? `Decided with ${configurationName(configuration)}, in use here since ${clock(since)}.${newer}` : "";
  foot.hidden = false;
  if (foot.dataset.text === text + user) return;
  foot.dataset.text = text + user;
  show(foot, h("span", {}, text), signedIn ? h("span", {}, ` Signed in as ${visible(user)}. `, h("button", { type: "button", class: "link", on: { click: () => {
    api.forgetToken();
    location.reload();
  } } }, "Sign out")) : null);
}

export function configurationName({ origin, file }) {
  if (origin === "scheduler") return "the configuration of the scheduler on this machine";
  if (origin === "file") return `the configuration ${visible(file)}`;
  if (origin === "recording") return "the configuration of the recording";
  return "the default configuration";
}

function themeSwitch() {
  const order = Object.keys(THEMES);
  const button = h("button", { type: "button", class: "quiet theme", id: "theme" });
  const draw = () => {
    const [text, drawing] = THEMES[theme.chosen()];
    show(button, icon(drawing));
    button.setAttribute("aria-label", `Colour scheme: ${text}`);
    button.title = `Colour scheme: ${text}`;
  };
  button.addEventListener("click", () => {
    theme.choose(order[(order.indexOf(theme.chosen()) + 1) % order.length]);
    draw();
    announce(button.title);
  });
  draw();
  return button;
}

/** A combobox over pods and nodes: arrows choose, Enter opens, "/" reaches it from anywhere. */
function searchField(store) {
  const list = h("ul", { id: "found", role: "listbox", "aria-label": "Pods and nodes found", hidden: true });
  const input = h("input", {
    id: "search", type: "search", placeholder: "Find a pod or node", role: "combobox", autocomplete: "off", spellcheck: "false",
    "aria-label": "Find a pod or node", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", "aria-keyshortcuts": "/",
  });
  let [found, active, request] = [[], -1, null];

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const open = (entry) => {
    input.value = "";
    close();
    location.hash = entry.address;
  };
  const draw = () => {
    show(list, found.length ? found.map((entry, place) => h("li", {
      id: `found-${place}`, role: "option", "aria-selected": place === active, class: place === active ? "active" : "",
      on: { mousedown: (event) => event.preventDefault(), click: () => open(entry) },
    }, h("span", { class: "kind" }, entry.kind), h("span", { class: "name" }, entry.name), h("span", { class: "note" }, entry.note)))
      : h("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "note" }, "Nothing of this name"));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    if (active >= 0) input.setAttribute("aria-activedescendant", `found-${active}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const look = debounced(async () => {
    const text = input.value.trim();
    request?.abort();
    if (!text) return close();
    request = new AbortController();
    const nodes = nodesNamed(store, text);
    let pods = [];
    try {
      pods = (await api.get("/pods", { q: text, limit: FOUND }, request.signal)).pods;
    } catch (error) {
      if (error.name === "AbortError") return undefined;
    }
    found = [...pods.slice(0, nodes.length ? FOUND - 3 : FOUND).map((pod) => ({
      kind: "pod", name: `${pod.namespace}/${pod.name}`, note: pod.node ?? pod.phase ?? "", address: address(["pods", pod.namespace, pod.name]),
    })), ...nodes].slice(0, FOUND);
    active = found.length ? 0 : -1;
    announce(found.length ? `${counted(found.length, "result")}` : "Nothing of this name");
    return draw();
  }, 150);

  input.addEventListener("input", look);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      close();
      input.value = "";
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && found.length && !list.hidden) {
      event.preventDefault();
      active = (active + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      draw();
    } else if (event.key === "Enter" && active >= 0 && !list.hidden) {
      event.preventDefault();
      open(found[active]);
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  return h("div", { class: "search", role: "search" }, icon("search"), input, list);
}

function nodesNamed(store, text) {
  const wanted = text.toLowerCase();
  const found = [];
  for (const [row, name] of (store.nodes?.names ?? []).entries()) {
    if (name.toLowerCase().includes(wanted)) found.push({ kind: "node", name, note: store.nodes.zones[row] ?? "", address: address(["nodes", name]) });
    if (found.length === FOUND) break;
  }
  return found;
}
