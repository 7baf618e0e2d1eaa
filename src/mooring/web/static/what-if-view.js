/** What if? Pods pasted or edited, nodes cordoned, drained or added, weights moved: the outcome follows at once. */

import { actions, createPods } from "./actions.js";
import * as api from "./api.js";
import { debounced, h, newId, oneAtATime, show } from "./dom.js";
import { amount, count, visible } from "./format.js";
import { onTheme } from "./theme.js";
import { results } from "./what-if-results.js";
import { kindsOf, paramsOf, requestOf, stateOf } from "./what-if-state.js";
import { choice, failure, loading } from "./widgets.js";
import { written } from "./yaml.js";

const MOST_WEIGHT = 10;

export function view(main, { store, params, navigate, title }) {
  title("What if");
  const state = stateOf(params);
  const outcome = h("div", { class: "results stack", id: "results", "aria-live": "polite", "aria-busy": "true" }, loading("Deciding"));
  const problem = h("div", { class: "problem", id: "what-if-problem", role: "alert" });
  const leaving = new AbortController();
  let last = null;

  const run = oneAtATime(async () => {
    outcome.setAttribute("aria-busy", "true");
    try {
      const found = await api.postPatiently("/what-if", requestOf(state), leaving.signal);
      show(problem);
      outcome.classList.remove("outdated");
      editor.setAttribute("aria-invalid", "false");
      show(outcome, results(found, { previous: last }));
      last = found;
      outcome.setAttribute("aria-busy", "false");
    } catch (error) {
      if (error.name === "AbortError") return;
      outcome.setAttribute("aria-busy", "false");
      showProblem(problem, error);
      editor.setAttribute("aria-invalid", String(error.field === "pods"));
      if (last === null) show(outcome, failure(error, run));
      else markOutdated(outcome);
    }
  });

  const soon = debounced(run, 250);
  const change = (changed) => {
    Object.assign(state, changed);
    navigate(paramsOf(state));
    soon();
  };

  const editor = h("textarea", { id: "what-if-pods", rows: "15", spellcheck: "false", autocapitalize: "off", value: state.pods, "aria-describedby": "what-if-problem" });
  editor.addEventListener("input", () => change({ pods: editor.value }));
  const nodeNames = h("datalist", { id: "what-if-nodes" }, store.nodes.names.slice(0, 2000).map((name) => h("option", { value: name })));

  show(main,
    h("div", { class: "page-head" }, h("h1", {}, "What if?"), h("p", { class: "note" }, "Decided on a copy of the cluster. Nothing is created or changed.")),
    h("div", { class: "lab" },
      h("form", { class: "card inputs", "aria-label": "What if", on: { submit: (event) => event.preventDefault() } },
        h("fieldset", {}, h("legend", {}, "Pods"),
          state.pod ? existingPod(state, change, editor) : null,
          h("label", { for: "what-if-pods", class: "note" }, "Manifests of pods, Deployments, Jobs and others, as for kubectl apply"), editor,
          h("div", { class: "row" }, countField(state, change), actions(store) ? createPods(() => state.pods) : null),
          problem),
        h("fieldset", {}, h("legend", {}, "Nodes"), nodeNames,
          nodeList("cordon", "Cordon", state, change), nodeList("uncordon", "Uncordon", state, change), nodeList("drain", "Drain", state, change), addNodes(store, state, change)),
        h("fieldset", { id: "weights" }, h("legend", {}, "Weights of score plugins"), sliders(store.cluster.profiles ?? [], state, change))),
      outcome));
  run();
  const redraw = () => last && redrawn(outcome, () => show(outcome, results(last)));
  onTheme.addEventListener("theme", redraw);
  return {
    dispose() {
      onTheme.removeEventListener("theme", redraw);
      soon.cancel();
      leaving.abort();
    },
  };
}

/** What is shown belongs to an earlier input: it is dimmed, and says so. */
export function markOutdated(element) {
  if (element.classList.contains("outdated")) return;
  element.classList.add("outdated");
  element.prepend(h("p", { class: "notes" }, "This is the outcome before the change above, which has a mistake."));
}

/** Draws the same outcome once more. */
export function redrawn(element, draw) {
  const wasOutdated = element.classList.contains("outdated");
  element.classList.remove("outdated");
  draw();
  if (wasOutdated) markOutdated(element);
}

/** The message, and every problem with its field. */
export function showProblem(element, error) {
  const problems = error.problems ?? [];
  show(element, h("p", {}, visible(error.message)),
    problems.length > 1 ? h("ul", {}, problems.slice(0, 8).map((each) => h("li", {}, each.line ? `line ${each.line}: ` : "", visible([each.path, each.message].filter(Boolean).join(": "))))) : null);
}

function existingPod(state, change, editor) {
  const box = h("div", { class: "row" }, h("span", {}, "Decided again: ", h("strong", {}, visible(state.pod))),
    h("button", { type: "button", class: "quiet", on: { click: () => {
      box.remove();
      change({ pod: "" });
    } } }, "Leave it out"));
  const [namespace, ...name] = state.pod.split("/");
  // Where the server sends the manifest, it can be edited instead.
  api.get(api.podPath(namespace, name.join("/"))).then(({ manifest }) => {
    if (!manifest || !box.isConnected) return;
    box.append(h("button", { type: "button", class: "quiet", on: { click: () => {
      editor.value = typeof manifest === "string" ? manifest : written(manifest);
      box.remove();
      change({ pod: "", pods: editor.value });
      editor.focus();
    } } }, "Edit its YAML"));
  }).catch(() => {});
  return box;
}

function countField(state, change) {
  const input = h("input", { id: "what-if-count", type: "number", min: "1", max: "1000", value: String(state.count) });
  input.addEventListener("input", () => change({ count: Math.max(1, Number.parseInt(input.value, 10) || 1) }));
  return h("div", { class: "row" }, h("label", { for: "what-if-count", class: "note" }, "Times"), input);
}

function nodeList(key, label, state, change) {
  const id = `what-if-${key}`;
  const chips = h("ul", { class: "chips", "aria-label": `${label}: nodes` });
  const input = h("input", { id, type: "text", list: "what-if-nodes", autocomplete: "off", spellcheck: "false", placeholder: "name of a node" });
  const draw = () => show(chips, state[key].map((name) => h("li", {}, visible(name), h("button", { type: "button", class: "quiet", "aria-label": `Leave out ${name}`, on: { click: () => set(state[key].filter((each) => each !== name)) } }, "×"))));
  const set = (names) => {
    change({ [key]: names });
    draw();
  };
  const take = () => {
    const name = input.value.trim();
    input.value = "";
    if (name && !state[key].includes(name)) set([...state[key], name]);
  };
  input.addEventListener("change", take);
  draw();
  return h("div", { class: "field" }, h("label", { for: id }, label), input, chips);
}

function addNodes(store, state, change) {
  const kinds = kindsOf(store.nodes).slice(0, 30);
  const options = [["", "choose a kind"], ...kinds.map((kind) => [kind.like, describe(kind)]), ["template", "of a manifest…"]];
  const first = state.add[0] ?? { like: "", count: 1 };
  const current = { ...first };
  const template = h("textarea", { id: "what-if-template", rows: "8", value: state.template, spellcheck: "false", hidden: current.like !== "template", "aria-label": "Manifest of the node" });
  const number = h("input", { id: "what-if-add-count", type: "number", min: "1", max: "5000", value: String(current.count) });
  const set = () => {
    template.hidden = current.like !== "template";
    change({ template: template.value, add: current.like && (current.like !== "template" || template.value.trim()) ? [{ ...current }, ...state.add.slice(1)] : [] });
  };
  number.addEventListener("input", () => {
    current.count = Math.max(1, Number.parseInt(number.value, 10) || 1);
    set();
  });
  template.addEventListener("input", set);
  const known = options.some(([like]) => like === current.like) ? options : [...options, [current.like, `like ${current.like}`]];
  return h("div", {},
    h("div", { class: "add-nodes" },
      h("div", { class: "field" }, h("label", { for: "what-if-add-count" }, "Add nodes"), number),
      choice("what-if-add-kind", "of the kind", known, current.like, (like) => {
        current.like = like;
        set();
      })),
    template);
}

function describe({ type, amounts, taints, count: number }) {
  const size = ["cpu", "memory"].filter((each) => amounts[each]).map((each) => amount(each, amounts[each])).join(", ");
  const more = Object.keys(amounts).filter((each) => each.includes("/") && !each.startsWith("hugepages")).map((each) => `${count(amounts[each])} ${each}`);
  return visible([type, size, ...more, taints.length ? `tainted ${taints[0].split(/[=:]/)[0]}` : "", `(${count(number)} now)`].filter(Boolean).join(" · "));
}

function sliders(profiles, state, change) {
  return h("div", { class: "sliders" }, profiles.map((profile) => [
    profiles.length > 1 ? h("h3", {}, visible(profile.name)) : null,
    profile.plugins.filter((plugin) => plugin.weight !== null && plugin.weight !== undefined).map((plugin) => slider(profile.name, plugin, state, change)),
  ]));
}

function slider(profile, plugin, state, change) {
  const id = newId("weight");
  const value = state.weights[profile]?.[plugin.name] ?? plugin.weight;
  const output = h("output", { for: id, class: "number" }, String(value));
  const input = h("input", { id, type: "range", min: "0", max: String(Math.max(MOST_WEIGHT, plugin.weight, value)), step: "1", value: String(value), "data-plugin": plugin.name });
  const box = h("div", { class: `slider ${value !== plugin.weight ? "changed" : ""}` }, h("label", { for: id }, visible(plugin.name)), input, output);
  input.addEventListener("input", () => {
    const weight = Number(input.value);
    output.textContent = String(weight);
    box.classList.toggle("changed", weight !== plugin.weight);
    const others = { ...state.weights[profile] };
    delete others[plugin.name];
    if (weight !== plugin.weight) others[plugin.name] = weight;
    const weights = { ...state.weights, [profile]: others };
    if (!Object.keys(others).length) delete weights[profile];
    change({ weights });
  });
  return box;
}
