/** The cluster as a map of nodes, with the same nodes as a list behind it, and decisions as they happen. */

import { colouring, labelOf } from "./colours.js";
import { decisionItem } from "./decision-list.js";
import { announce, debounced, h, oncePerFrame, show } from "./dom.js";
import { compiled, FilterError, has, measured } from "./filter.js";
import { amount, count, counted, percent, visible } from "./format.js";
import { grouped, ranks } from "./layout.js";
import { MapCanvas } from "./map-canvas.js";
import { address } from "./routes.js";
import { forPrint, onTheme, scheme } from "./theme.js";
import { badge, bar, choice, empty, failure } from "./widgets.js";
import { WindowList } from "./window-list.js";

const DEFAULTS = { size: "cpu", fill: "cpu", color: "use:cpu", group: "", filter: "" };
const SHOWN_DECISIONS = 12;
const FREQUENT_LABELS = 40;

export function view(main, { store, params, navigate, title }) {
  title("Map");
  if (store.nodesError) return show(main, failure(store.nodesError)) && {};
  const state = { ...DEFAULTS, ...params };
  let [nodes, matches, filterError] = [store.nodes, new Uint8Array(0), null];
  let shape = "";
  let labelled = { nodes: null, revision: 0, keys: [] };

  const open = (row) => {
    location.hash = address(["nodes", nodes.names[row]]);
  };
  const controls = h("form", { class: "controls no-print", "aria-label": "Map", on: { submit: (event) => event.preventDefault() } });
  const canvas = h("canvas", { id: "map", role: "img" });
  const tip = h("div", { class: "tip", hidden: true });
  const room = h("div", { class: "map-room", id: "map-room" }, canvas, tip);
  const legend = h("div", { id: "legend", class: "legend" });
  const matchCount = h("p", { id: "match-count", class: "note", role: "status" });
  const decisions = h("ol", { class: "decisions" });
  const list = new WindowList({
    id: "nodes", label: "Nodes", rowHeight: 44, nameOf: (row) => nodes.names[row], onOpen: open,
    row: (row) => nodeRow(nodes, row, resourceShown()),
    onActive: (row) => map.activate(row ?? -1),
  });
  const map = new MapCanvas(canvas, room, { onPoint: (row, event) => point(row, event), onOpen: open });

  const resourceShown = () => (Object.hasOwn(nodes.allocatable, state.fill) ? state.fill : "cpu");

  const input = h("input", {
    id: "filter", type: "text", value: state.filter, autocomplete: "off", spellcheck: "false", autocapitalize: "off",
    placeholder: "zone=a and cpu.free>2 and taint=gpu", "aria-describedby": "filter-error match-count",
  });
  const problem = h("p", { id: "filter-error", class: "problem", role: "alert", hidden: true });
  const changeFilter = debounced(() => change({ filter: input.value }), 60);
  input.addEventListener("input", changeFilter);

  function change(changed) {
    Object.assign(state, changed);
    navigate(Object.fromEntries(Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key])));
    refresh();
  }

  function drawControls() {
    // Labels are counted when nodes have changed, not at every key of the filter.
    if (labelled.nodes !== nodes || labelled.revision !== nodes.revision) labelled = { nodes, revision: nodes.revision, keys: labelKeys(nodes).slice(0, FREQUENT_LABELS) };
    const labels = labelled.keys;
    const resources = Object.keys(nodes.allocatable);
    const key = JSON.stringify([resources, labels]);
    if (key === shape) return;
    shape = key;
    const ofLabels = labels.map((label) => [`label:${label}`, `label ${label}`]);
    show(controls,
      h("div", { class: "field grow" }, h("label", { for: "filter" }, "Filter"), input, problem),
      choice("size", "Size", [["", "all alike"], ...resources.map((each) => [each, each])], state.size, (size) => change({ size })),
      choice("fill", "Fill", resources.map((each) => [each, `requested ${each}`]), state.fill, (fill) => change({ fill })),
      choice("color", "Colour", [...resources.map((each) => [`use:${each}`, `use of ${each}`]), ["zone", "zone"], ["taints", "taints"],
        ["fragmentation", "fragmentation"], ...ofLabels], state.color, (color) => change({ color })),
      choice("group", "Group", [["", "none"], ["zone", "by zone"], ...ofLabels.map(([value, text]) => [value, `by ${text}`])], state.group, (group) => change({ group })));
  }

  function applyFilter() {
    const previous = matches;
    matches = new Uint8Array(nodes.names.length).fill(1);
    filterError = null;
    try {
      const predicate = compiled(state.filter, nodes);
      for (let row = 0; row < matches.length; row += 1) matches[row] = predicate(nodes, row) ? 1 : 0;
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      filterError = error;
      // While a word is being typed, the last matches stay.
      if (previous.length === matches.length) matches = previous;
    }
    input.setAttribute("aria-invalid", String(filterError !== null));
    problem.hidden = filterError === null;
    if (filterError) show(problem, filterError.message, " ", marked(state.filter, filterError));
  }

  let placedKey = "";
  function refresh() {
    nodes = store.nodes;
    drawControls();
    applyFilter();
    const fill = resourceShown();
    const size = Object.hasOwn(nodes.allocatable, state.size) ? nodes.allocatable[state.size] : null;
    const weights = size ?? nodes.names.map(() => 1);
    const colours = colouring(state.color, nodes, scheme());
    const model = { nodes, weights, colouring: colours, matches, fill: (row) => (has(nodes, fill, row) ? measured(nodes, fill, "use", row) : Number.NaN), groups: groupsOf(nodes, state.group) };
    const key = JSON.stringify([state.size, state.group, nodes.names.length, nodes.revision && state.group ? nodes.revision : 0]);
    map.set(model, key === placedKey);
    placedKey = key;
    const rows = [];
    for (let row = 0; row < matches.length; row += 1) if (matches[row]) rows.push(row);
    list.set(byName(nodes, rows));
    drawLegend(legend, colours);
    const text = state.filter && !filterError ? `${count(rows.length)} of ${counted(nodes.names.length, "node")} match` : counted(nodes.names.length, "node");
    if (matchCount.textContent !== text) matchCount.textContent = text;
    canvas.setAttribute("aria-label", `Map of ${counted(nodes.names.length, "node")}, coloured by ${colours.title.toLowerCase()}. The list of nodes shows the same.`);
  }

  function point(row, event) {
    canvas.classList.toggle("pointing", row >= 0);
    tip.hidden = row < 0;
    map.activate(row >= 0 ? row : (list.active ?? -1));
    if (row < 0) return;
    show(tip, tipContent(nodes, row));
    const box = room.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 14, box.width - tip.offsetWidth - 8);
    tip.style.setProperty("left", `${Math.max(0, left)}px`);
    const below = event.clientY - box.top + room.scrollTop + 18;
    const isLow = event.clientY + tip.offsetHeight + 28 > innerHeight;
    tip.style.setProperty("top", `${isLow ? below - tip.offsetHeight - 30 : below}px`);
  }

  /** Paper is light, and is drawn before the next frame would be. */
  function printed(isPrinting) {
    forPrint(isPrinting);
    map.paint();
  }

  function drawDecisions() {
    const shown = store.decisions.slice(0, SHOWN_DECISIONS);
    const text = store.status === "static" ? "Nothing happens in a file. On a cluster that runs, decisions appear here as they are made."
      : store.status === "live" ? "None yet. Create a pod, and its decision appears here." : "Decisions appear here once the page is connected again.";
    show(decisions, shown.length ? shown.map(decisionItem) : h("li", { class: "note" }, text));
  }

  show(main,
    h("h1", { class: "hidden" }, "Map of nodes"),
    controls,
    notesOf(store),
    h("div", { class: "map-layout" },
      h("div", { class: "map-main card" }, room, legend),
      h("div", { class: "map-side" },
        h("section", { class: "card side-nodes", "aria-labelledby": "nodes-title" },
          h("div", { class: "card-head" }, h("h2", { id: "nodes-title" }, "Nodes"), matchCount), list.element),
        h("section", { class: "card side-live no-print", "aria-labelledby": "live-title" },
          h("div", { class: "card-head" }, h("h2", { id: "live-title" }, "Decisions"), h("a", { href: "#/live" }, "All")), decisions))));

  if (!nodes.names.length) {
    show(room, empty("No nodes yet", "The cluster has no nodes. They appear here as they join."));
  }
  const events = listen([
    [store, "nodes", oncePerFrame(refresh)],
    [store, "decision", oncePerFrame(drawDecisions)],
    [store, "status", drawDecisions],
    [onTheme, "theme", refresh],
    [window, "beforeprint", () => printed(true)],
    [window, "afterprint", () => printed(false)],
  ]);
  refresh();
  drawDecisions();
  return {
    update(changed) {
      Object.assign(state, DEFAULTS, changed);
      input.value = state.filter;
      shape = "";
      refresh();
      announce(matchCount.textContent);
    },
    dispose() {
      events();
      changeFilter.cancel();
      map.dispose();
      list.dispose();
    },
  };
}

/** Adds listeners; returns what removes them. */
export function listen(entries) {
  for (const [target, type, listener] of entries) target.addEventListener(type, listener);
  return () => {
    for (const [target, type, listener] of entries) target.removeEventListener(type, listener);
  };
}

export function notesOf(store) {
  const notes = store.cluster.notes ?? [];
  return notes.length ? h("div", { class: "notes", role: "note" }, notes.map((note) => h("p", {}, visible(note)))) : null;
}

/** Labels by which nodes differ or group, the most useful first: few values, many nodes. */
export function labelKeys(nodes) {
  const values = new Map();
  for (const labels of nodes.labels) {
    for (const [key, value] of Object.entries(labels ?? {})) {
      if (!values.has(key)) values.set(key, new Set());
      if (values.get(key).size <= 64) values.get(key).add(value);
    }
  }
  const few = [...values].filter(([, found]) => found.size <= 64 || nodes.names.length <= 64);
  return few.map(([key]) => key).filter((key) => key !== "kubernetes.io/hostname").sort();
}

/** Groups of rows; in each by name. */
export function groupsOf(nodes, choiceOfGroup) {
  const groups = unordered(nodes, choiceOfGroup);
  for (const { rows } of groups) byName(nodes, rows);
  return groups;
}

function unordered(nodes, choiceOfGroup) {
  if (choiceOfGroup === "zone") return grouped(nodes.names.length, (row) => nodes.zones[row] ?? "");
  if (choiceOfGroup.startsWith("label:")) {
    const key = choiceOfGroup.slice("label:".length);
    return grouped(nodes.names.length, (row) => labelOf(nodes, row, key));
  }
  return [{ name: "", rows: [...nodes.names.keys()] }];
}

const RANKS = new WeakMap(); // names → the place of each: sorted once, until nodes come or go

function byName(nodes, rows) {
  let known = RANKS.get(nodes.names);
  if (known?.length !== nodes.names.length) RANKS.set(nodes.names, known = ranks(nodes.names));
  return rows.sort((a, b) => known[a] - known[b]);
}

function marked(text, { from, to }) {
  return h("code", { class: "marked", "aria-hidden": "true" }, text.slice(Math.max(0, from - 24), from), h("mark", {}, text.slice(from, to) || "␣"), text.slice(to, to + 16));
}

function nodeRow(nodes, row, resource) {
  const share = measured(nodes, resource, "use", row);
  const hasNone = !has(nodes, resource, row);
  const note = [nodes.zones[row], isMarked(nodes, row) ? null : counted(nodes.pods[row], "pod")].filter(Boolean).join(" · ");
  return [
    h("span", { class: "node-name name" }, visible(nodes.names[row])),
    h("span", { class: "node-note note" }, states(nodes, row), h("span", {}, note)),
    bar(share), h("span", { class: "number" }, hasNone ? "none" : percent(share)),
    h("span", { class: "hidden" }, hasNone ? ` of ${resource} allocatable` : ` of ${resource} requested`),
  ];
}

function isMarked(nodes, row) {
  return !nodes.ready[row] || nodes.unschedulable[row];
}

function states(nodes, row) {
  return [nodes.ready[row] ? null : badge("not ready", "bad"), nodes.unschedulable[row] ? badge("cordoned", "warn") : null];
}

function tipContent(nodes, row) {
  const measures = Object.keys(nodes.allocatable).filter((resource) => nodes.allocatable[resource][row] && resource !== "pods").slice(0, 4);
  const taints = nodes.taints[row] ?? [];
  return [
    h("strong", {}, visible(nodes.names[row])), states(nodes, row),
    h("p", { class: "note" }, [nodes.zones[row], counted(nodes.pods[row], "pod")].filter(Boolean).join(" · ")),
    measures.map((resource) => h("div", { class: "tip-row" }, h("span", {}, resource), bar(measured(nodes, resource, "use", row)),
      h("span", { class: "number" }, `${amount(resource, measured(nodes, resource, "free", row))} free`))),
    taints.length ? h("p", { class: "note" }, "Taints: ", taints.slice(0, 3).map(visible).join(", ")) : null,
  ];
}

export function drawLegend(element, { kind, title, entries }) {
  const swatch = (entry) => h("span", { class: "swatch", "aria-hidden": "true", style: { "background-color": entry.colour } });
  show(element, h("span", { class: "legend-title" }, title),
    h("ul", { class: kind }, entries.map((entry) => h("li", {}, swatch(entry), h("span", {}, visible(entry.label)),
      entry.count === undefined ? null : h("span", { class: "note number" }, count(entry.count))))));
}
