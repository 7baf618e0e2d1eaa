/** Recorded decisions: scroll back, see the cluster as it was, replay with another configuration. */

import * as api from "./api.js";
import { colouring } from "./colours.js";
import { kindBadge, podKey } from "./decision-list.js";
import { atMostEvery, debounced, h, show } from "./dom.js";
import { measured } from "./filter.js";
import { clock, count, counted, duration, visible } from "./format.js";
import { funnel } from "./funnel.js";
import { MapCanvas } from "./map-canvas.js";
import { groupsOf } from "./map-view.js";
import { because } from "./moves.js";
import { address, podParts } from "./routes.js";
import { scoreBars } from "./score-bars.js";
import { onTheme, scheme } from "./theme.js";
import { showProblem } from "./what-if-view.js";
import { badge, copyable, empty, facts, failure, loading, nodeLink, podLink, section, table } from "./widgets.js";
import { WindowList } from "./window-list.js";

const WINDOW = 400;
const SHOWN = 200;

export function view(main, { store, params, navigate, title }) {
  title("Time");
  const recording = store.cluster.recording;
  if (!recording) {
    show(main, h("div", { class: "page-head" }, h("h1", {}, "Time")), h("div", { class: "card" }, empty("No recording is open",
      "A scheduler that records keeps every decision with its evidence. Open the file to scroll back and to replay it with another configuration.",
      copyable("mooring run --record decisions.mooring\nmooring web --recording decisions.mooring\n", "commands that record and open a recording"))));
    return {};
  }
  if (!recording.decisions) {
    show(main, h("div", { class: "page-head" }, h("h1", {}, "Time")), h("div", { class: "card" }, empty("Nothing is recorded yet", "Decisions appear here once the scheduler has made some. Open the view again then.")));
    return {};
  }
  let total = recording.decisions;
  const state = { at: place(params.at, total) };
  let [items, request, shownAt] = [[], null, -1];

  const range = h("input", { id: "time-at", type: "range", min: "0", max: String(Math.max(0, total - 1)), value: String(state.at), "aria-label": "Decision" });
  const label = h("p", { id: "time-label", class: "lead" });
  const detail = h("div", { class: "stack", id: "decision" }, loading("Reading the decision"));
  const canvas = h("canvas", { role: "img", "aria-label": "Map of the nodes at that time" });
  const room = h("div", { class: "map-room" }, canvas);
  const map = new MapCanvas(canvas, room, { onPoint: () => {}, onOpen: (row) => {
    location.hash = address(["nodes", thenNodes.names[row]]);
  } });
  let thenNodes = store.nodes;
  const list = new WindowList({
    id: "recorded", label: "Recorded decisions", rowHeight: 44, nameOf: (item) => item.index, onOpen: (item) => go(item.index),
    row: (item) => [h("span", { class: "number note" }, clock(item.time)), h("span", { class: "node-note note" }, h("span", {}, visible(item.node ?? item.message ?? ""))),
      kindBadge(item.kind), h("span", { class: "node-name" }, visible(podKey(item.pod)))],
  });

  async function go(at, isListKept = true) {
    state.at = place(at, total);
    range.value = String(state.at);
    navigate({ at: state.at });
    if (!isListKept || !items.some((item) => item.index === state.at)) await loadItems();
    list.activateNamed(state.at);
    drawLabel();
    loadDecision();
  }

  function drawLabel() {
    const item = items.find((each) => each.index === state.at);
    range.setAttribute("aria-valuetext", item ? `${clock(item.time)}, ${podKey(item.pod)}` : String(state.at));
    show(label, `Decision ${count(state.at + 1)} of ${count(total)}`, item ? ` · ${clock(item.time)}` : "");
  }

  async function loadItems() {
    try {
      const found = await api.get("/recording", { at: state.at, window: WINDOW });
      items = found.items;
      // A recording that is still written grows.
      total = Math.max(total, found.total);
      range.max = String(total - 1);
      list.set(items);
    } catch (error) {
      show(detail, failure(error, () => go(state.at)));
    }
  }

  const loadDecision = atMostEvery(async () => {
    request?.abort();
    request = new AbortController();
    const { at } = state;
    try {
      const { signal } = request;
      const [found, nodes] = await Promise.all([api.get(`/recording/${at}`, {}, signal), api.get("/nodes", { at }, signal)]);
      // Evidence has the chosen node only; decided again on that state, the pod has the scores of others beside it.
      const then = await api.get(api.podPath(...podParts(podKey(found.pod))), { at }, signal).catch((error) => {
        if (error.name === "AbortError") throw error;
        return {};
      });
      shownAt = at;
      thenNodes = nodes;
      drawMap(found);
      show(detail, decisionDetail({ ...found, funnel: then.funnel, scores: then.scores }, items.find((each) => each.index === at)));
    } catch (error) {
      if (error.name !== "AbortError" && shownAt !== at) show(detail, failure(error, () => go(at)));
    }
  }, 250);

  function drawMap(found) {
    const nodes = thenNodes;
    const matches = new Uint8Array(nodes.names.length).fill(1);
    map.set({ nodes, weights: nodes.allocatable.cpu ?? nodes.names.map(() => 1), groups: groupsOf(nodes, ""), matches, colouring: colouring("use:cpu", nodes, scheme()), fill: (row) => measured(nodes, "cpu", "use", row) });
    map.activate(nodes.names.indexOf(found.node ?? found.decision?.node ?? ""));
  }

  const step = (by) => h("button", { type: "button", "aria-label": by < 0 ? "Earlier decision" : "Later decision", on: { click: () => go(state.at + by) } }, by < 0 ? "←" : "→");
  const slide = debounced(() => go(Number(range.value)), 60);
  range.addEventListener("input", slide);

  show(main, h("div", { class: "stack" },
    h("div", { class: "page-head" }, h("h1", {}, "Time"), h("p", { class: "note" }, `${counted(total, "recorded decision")}, ${clock(recording.from)} to ${clock(recording.to)}.`)),
    h("div", { class: "card" }, label, h("div", { class: "scrubber" }, step(-1), range, step(1))),
    h("div", { class: "time-layout" },
      h("section", { class: "card time-list", "aria-label": "Recorded decisions" }, list.element),
      h("div", { class: "stack" }, detail,
        section("The cluster then", { class: "time-map", note: "Nodes before the decision, filled by requested cpu." }, room))),
    replaySection()));
  go(state.at, false);
  const redraw = () => shownAt >= 0 && loadDecision();
  onTheme.addEventListener("theme", redraw);
  return {
    update(changed) {
      go(place(changed.at, total));
    },
    dispose() {
      onTheme.removeEventListener("theme", redraw);
      loadDecision.cancel();
      slide.cancel();
      request?.abort();
      map.dispose();
      list.dispose();
    },
  };
}

function place(text, total) {
  const number = Number.parseInt(text ?? String(total - 1), 10);
  return Math.max(0, Math.min(total - 1, Number.isNaN(number) ? total - 1 : number));
}

function decisionDetail(found, item) {
  const decision = found.decision ?? found.evidence ?? found;
  const pod = podKey(found.pod ?? item?.pod ?? "");
  const node = decision.node ?? found.node ?? item?.node;
  const message = decision.message ?? found.message ?? item?.message;
  const steps = found.funnel?.length ? found.funnel : funnelOf(decision);
  return [
    section("The decision", { id: "decision-head" },
      h("p", { class: "lead" }, podLink(pod), node ? [" was placed on ", nodeLink(node), "."] : " found no node.", " ", item ? kindBadge(item.kind) : null),
      message ? h("p", { class: "message" }, visible(message)) : null,
      facts([
        decision.attempt ? ["Attempt", count(decision.attempt)] : null,
        decision.nodes !== undefined ? ["Feasible", `${count(decision.feasibleNodes ?? 0)} of ${counted(decision.nodes, "node")}`] : null,
        decision.total !== undefined ? ["Score", count(decision.total)] : null,
        decision.plan?.evict?.length ? ["Preempts", decision.plan.evict.map(visible).join(", ")] : null,
      ])),
    steps.length ? section("Filters", {}, funnel(steps, decision.nodes)) : null,
    found.scores?.nodes?.length ? section("Scores", {}, scoreBars(found.scores, { chosen: node })) : ownScores(decision),
  ];
}

/** Evidence has rejections by plugin and reason: the steps of a funnel. */
export function funnelOf({ rejections = [], nodes = 0 }) {
  const steps = [];
  let left = nodes;
  for (const group of rejections) {
    let step = steps.find((each) => each.plugin === group.plugin);
    if (!step) {
      step = { plugin: group.plugin, before: left, rejected: 0, after: left, reasons: [] };
      steps.push(step);
    }
    step.rejected += group.count;
    left -= group.count;
    step.after = left;
    step.reasons.push({ reason: group.reasons.join("; "), nodes: group.count });
  }
  return steps;
}

function ownScores(decision) {
  const scores = Array.isArray(decision.scores) ? decision.scores : [];
  if (!scores.length) return null;
  const plugins = scores.map(({ plugin, weight }) => ({ name: plugin, weight }));
  return section("Scores", { note: "Of the chosen node." }, scoreBars({ plugins, nodes: [{ name: decision.node, total: decision.total, parts: scores }] }, { chosen: decision.node }));
}

function replaySection() {
  const area = h("textarea", { id: "replay-config", rows: "12", spellcheck: "false", "aria-describedby": "replay-problem" });
  const problem = h("div", { id: "replay-problem", class: "problem", role: "alert" });
  const outcome = h("div", { class: "stack", id: "replay-outcome", "aria-live": "polite" });
  const button = h("button", { type: "submit", class: "primary" }, "Replay");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    show(problem);
    show(outcome, loading("Deciding every recorded pod again"));
    try {
      show(outcome, replayed(await api.post("/recording/replay", { config: area.value })));
    } catch (error) {
      show(outcome);
      showProblem(problem, error);
    }
    button.disabled = false;
  };
  return section("Replay with another configuration", { id: "replay", note: "Each decision is taken again on the state that was recorded." },
    h("form", { class: "stack", on: { submit } }, h("div", { class: "field" }, h("label", { for: "replay-config" }, "KubeSchedulerConfiguration"), area), problem, h("div", {}, button)), outcome);
}

function replayed(found) {
  const differing = found.differing ?? [];
  return [
    found.isPartial ? h("p", { class: "notes" }, "The time for one replay ended before the last decision: mooring replay takes all of them.") : null,
    h("p", { class: "lead" }, differing.length ? `${count(found.differs ?? differing.length)} of ${counted(found.decisions, "decision")} would have differed.` : `All ${counted(found.decisions, "decision")} would have been the same.`, found.took ? h("span", { class: "note" }, ` Decided in ${duration(found.took)}.`) : null),
    differing.length ? table("Decisions that would have differed", [{ title: "Time" }, { title: "Pod" }, { title: "Was" }, { title: "Would be" }, { title: "Because of" }],
      differing.slice(0, SHOWN).map((each) => [h("a", { href: address(["time"], { at: each.index }) }, clock(each.time) || count(each.index)), visible(podKey(each.pod)), side(each.was), side(each.would), because(each)])) : null,
    skippedCount(found.skipped) ? h("p", { class: "note" }, `${counted(skippedCount(found.skipped), "decision")} could not be taken again.`) : null,
    (found.notes ?? []).map((note) => h("p", { class: "note" }, visible(note))),
    differing.length > SHOWN ? h("p", { class: "note" }, `${counted(differing.length - SHOWN, "more decision")}.`) : null,
  ];
}

/** By reason, or in all. */
function skippedCount(skipped) {
  return typeof skipped === "object" ? Object.values(skipped ?? {}).reduce((sum, each) => sum + Number(each), 0) : Number(skipped ?? 0);
}

function side(value) {
  const node = typeof value === "string" ? value : value?.node;
  if (node) return nodeLink(node);
  return [badge("no node", "warn"), " ", value?.message ? h("span", { class: "note" }, visible(value.message)) : null];
}
