/** Two configurations side by side, on the same cluster and the same pods. */

import * as api from "./api.js";
import { debounced, h, oneAtATime, show } from "./dom.js";
import { count, counted, duration, visible } from "./format.js";
import { configurationName } from "./frame.js";
import { because } from "./moves.js";
import { packed, unpacked } from "./routes.js";
import { onTheme } from "./theme.js";
import { scoreBars } from "./score-bars.js";
import { scoresByPod, tally } from "./what-if-results.js";
import { countsOf, EXAMPLE } from "./what-if-state.js";
import { markOutdated, redrawn, showProblem } from "./what-if-view.js";
import { badge, empty, failure, loading, nodeLink, section, table } from "./widgets.js";

const SHOWN = 200;
const OTHER = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
`;

export function view(main, { store, params, navigate, title }) {
  title("Compare");
  const kept = unpacked(params.s) ?? {};
  const state = { first: kept.first ?? "", second: kept.second ?? OTHER, pods: kept.pods ?? EXAMPLE, count: kept.count ?? 20 };
  const outcome = h("div", { class: "results stack", id: "results", "aria-live": "polite" }, loading("Deciding with both"));
  const problem = h("div", { class: "problem", id: "compare-problem", role: "alert" });
  const leaving = new AbortController();
  let last = null;

  const run = oneAtATime(async () => {
    outcome.setAttribute("aria-busy", "true");
    const body = { pods: state.pods, counts: countsOf(state.pods, state.count), compare: { config: state.second } };
    if (state.first.trim()) body.config = state.first;
    try {
      last = await api.postPatiently("/what-if", body, leaving.signal);
      show(problem);
      outcome.classList.remove("outdated");
      show(outcome, compared(last));
    } catch (error) {
      if (error.name === "AbortError") return;
      showProblem(problem, error);
      if (last === null) show(outcome, failure(error, run));
      else markOutdated(outcome);
    }
    outcome.setAttribute("aria-busy", "false");
  });

  const soon = debounced(run, 400);
  const change = (changed) => {
    Object.assign(state, changed);
    navigate({ s: packed(state) });
    soon();
  };
  const text = (id, label, key, rows, placeholder = "") => {
    const area = h("textarea", { id, rows: String(rows), spellcheck: "false", autocapitalize: "off", value: state[key], placeholder, "aria-describedby": "compare-problem" });
    area.addEventListener("input", () => change({ [key]: area.value }));
    return h("div", { class: "field" }, h("label", { for: id }, label), area);
  };
  const number = h("input", { id: "compare-count", type: "number", min: "1", max: "1000", value: String(state.count) });
  number.addEventListener("input", () => change({ count: Math.max(1, Number.parseInt(number.value, 10) || 1) }));

  show(main,
    h("div", { class: "page-head" }, h("h1", {}, "Compare configurations"), h("p", { class: "note" }, "The same pods, on the same cluster, decided by both. Nothing is created.")),
    h("form", { class: "stack", "aria-label": "Compare", on: { submit: (event) => event.preventDefault() } },
      h("div", { class: "sides" },
        h("div", { class: "card" }, text("config-first", "Configuration A", "first", 12, `Empty: ${store.cluster.configuration ? configurationName(store.cluster.configuration) : "the configuration of this page"}`)),
        h("div", { class: "card" }, text("config-second", "Configuration B", "second", 12))),
      h("div", { class: "card stack" },
        h("div", { class: "row" }, h("label", { for: "compare-count" }, "Place the pod below"), number, h("span", {}, "times, beside the pods that wait already.")),
        h("details", {}, h("summary", {}, "Manifests of the pods"), text("compare-pods", "Pods, Deployments, Jobs and others", "pods", 12))),
      problem),
    outcome);
  run();
  const redraw = () => last && redrawn(outcome, () => show(outcome, compared(last)));
  onTheme.addEventListener("theme", redraw);
  return {
    dispose() {
      onTheme.removeEventListener("theme", redraw);
      soon.cancel();
      leaving.abort();
    },
  };
}

function compared(found) {
  const [first, second] = sidesOf(found);
  if (!second) return empty("Nothing to compare", "The server returned one side only.");
  const rows = paired(first.placements ?? [], second.placements ?? []);
  const reasons = new Map((second.moved ?? []).map((each) => [each.pod, each]));
  const differing = rows.filter(([, a, b]) => (a?.node ?? null) !== (b?.node ?? null));
  return [
    section("Outcome", { id: "outcome", note: found.took === undefined ? undefined : `Decided in ${duration(found.took)}.` },
      h("p", { class: "lead" }, differing.length ? `${count(differing.length)} of ${counted(rows.length, "pod")} would go elsewhere with B.` : "Both decide alike."),
      h("div", { class: "sides" }, h("div", {}, h("h3", {}, "A"), tally(first)), h("div", {}, h("h3", {}, "B"), tally(second)))),
    differing.length ? section("Differences", { id: "differences" },
      table("Pods that are placed differently", [{ title: "Pod" }, { title: "A" }, { title: "B" }, { title: "Because of", class: "sentence" }],
        differing.slice(0, SHOWN).map(([pod, a, b]) => [h("span", { class: "name" }, visible(pod)), where(a), where(b), because(reasons.get(pod))])),
      differing.length > SHOWN ? h("p", { class: "note" }, `${counted(differing.length - SHOWN, "more pod")}.`) : null) : null,
    h("div", { class: "sides" }, spreadCard("Nodes used with A", first), spreadCard("Nodes used with B", second)),
    h("div", { class: "sides" }, scoresCard("Scores with A", first), scoresCard("Scores with B", second)),
  ];
}

export function sidesOf(found) {
  const second = found.compare ?? found.compared ?? found.sides?.[1];
  return [found.sides?.[0] ?? found, second];
}

function paired(first, second) {
  const others = new Map(second.map((each) => [each.pod, each]));
  return first.map((each) => [each.pod, each, others.get(each.pod)]);
}

function where(placement) {
  return placement?.node ? nodeLink(placement.node) : badge("no node", "warn");
}

/** How many of the pods each node takes. */
function spreadCard(title, side) {
  const counts = new Map();
  for (const { node } of side.placements ?? []) if (node) counts.set(node, (counts.get(node) ?? 0) + 1);
  const shown = [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  return section(title, { note: counted(shown.length, "node") },
    shown.length ? table(title, [{ title: "Node" }, { title: "Pods", class: "number" }], shown.slice(0, 12).map(([node, number]) => [nodeLink(node), count(number)])) : h("p", { class: "note" }, "No pod was placed."));
}

function scoresCard(title, side) {
  const [pod, scores] = scoresByPod(side.scores)[0] ?? [];
  if (!scores?.nodes?.length) return null;
  return section(title, { note: pod ? visible(pod) : undefined }, scoreBars({ ...scores, nodes: scores.nodes.slice(0, 8) }, { chosen: scores.nodes[0].name }));
}
