/** Decisions as they happen, with a filter by kind and a pause. */

import { decisionItem, KINDS, podKey } from "./decision-list.js";
import { h, oncePerFrame, show } from "./dom.js";
import { counted } from "./format.js";
import { listen } from "./map-view.js";
import { choice, empty } from "./widgets.js";

const SHOWN = 200;

export function view(main, { store, params, navigate, title }) {
  title("Live");
  const state = { kind: params.kind ?? "", q: params.q ?? "" };
  let paused = null;
  const list = h("ol", { class: "decisions", id: "decisions", "aria-label": "Decisions, the newest first" });
  const note = h("p", { class: "note", role: "status" });
  const box = h("div", { class: "card" }, list);
  const pause = h("button", { type: "button", id: "pause", "aria-pressed": "false" }, "Pause");
  const text = h("input", { id: "live-filter", type: "text", value: state.q, placeholder: "pod, node or message", autocomplete: "off", spellcheck: "false" });

  const matches = (decision) => (!state.kind || decision.kind === state.kind)
    && (!state.q || `${podKey(decision.pod)} ${decision.node ?? ""} ${decision.message ?? ""}`.toLowerCase().includes(state.q.toLowerCase()));

  function draw() {
    const shown = (paused ?? store.decisions).filter(matches);
    const missed = paused ? store.decisions.length - paused.length : 0;
    note.textContent = paused ? `Paused. ${counted(Math.max(0, missed), "decision")} since.` : counted(shown.length, "decision");
    if (shown.length) show(box, show(list, shown.slice(0, SHOWN).map(decisionItem)));
    else if (store.status === "static") show(box, empty("Nothing happens in a file", "Start mooring web on a cluster that runs to see decisions as they are made."));
    else show(box, empty(store.decisions.length ? "None of these" : "Waiting for decisions", store.decisions.length ? "No decision matches the filter." : "Pods that are created, bound or rejected appear here at once."));
  }

  const change = () => {
    navigate({ kind: state.kind, q: state.q });
    draw();
  };
  text.addEventListener("input", () => {
    state.q = text.value.trim();
    change();
  });
  pause.addEventListener("click", () => {
    paused = paused ? null : [...store.decisions];
    pause.setAttribute("aria-pressed", String(paused !== null));
    pause.textContent = paused ? "Resume" : "Pause";
    draw();
  });
  show(main, h("div", { class: "page-head" }, h("h1", {}, "Decisions"), note),
    h("div", { class: "controls" },
      h("div", { class: "field grow" }, h("label", { for: "live-filter" }, "Filter"), text),
      choice("live-kind", "Kind", [["", "all"], ...Object.entries(KINDS).map(([kind, [words]]) => [kind, words])], state.kind, (kind) => {
        state.kind = kind;
        change();
      }),
      h("div", { class: "field" }, pause)),
    box);
  draw();
  const off = listen([[store, "decision", oncePerFrame(() => paused === null && draw())], [store, "status", draw]]);
  return { dispose: off };
}
