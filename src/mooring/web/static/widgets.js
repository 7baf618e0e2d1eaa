/** Pieces that several views share: headings, states, bars, tables, things to copy. */

import { announce, h, newId, show, svg } from "./dom.js";
import { visible } from "./format.js";
import { address, podAddress, podParts } from "./routes.js";

export function podLink(key, text = key) {
  return h("a", { href: podAddress(...podParts(key)), class: "name" }, visible(text));
}

export function nodeLink(name, text = name) {
  return h("a", { href: address(["nodes", name]), class: "name" }, visible(text));
}

/** A part of a page, with its heading. */
export function section(title, attributes, ...children) {
  const id = newId("section");
  const { note, class: extra, ...others } = attributes ?? {};
  return h("section", { "aria-labelledby": id, class: `card ${extra ?? ""}`, ...others },
    h("div", { class: "card-head" }, h("h2", { id }, title), note ? h("p", { class: "note" }, note) : null),
    children);
}

export function badge(text, tone = "") {
  return h("span", { class: `badge ${tone}` }, visible(text));
}

/** A spinner with its sentence. Nothing moves where motion is reduced. */
export function loading(what = "Loading") {
  return h("div", { class: "state", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), h("p", {}, `${what}…`));
}

/** Nothing is there, and what would change that. */
export function empty(title, ...hints) {
  return h("div", { class: "state empty" }, icon("anchor", "state-icon"), h("h2", {}, title), hints.map((hint) => (hint instanceof Node ? hint : h("p", {}, hint))));
}

/** What went wrong, the nearest names, and a way on. */
export function failure(error, retry = null, linkOf = null) {
  const near = error.near ?? [];
  return h("div", { class: "state failed", role: "alert" },
    icon("alert", "state-icon"),
    h("h2", {}, error.status === 404 ? "Not found" : error.status === 403 ? "Not allowed" : error.status === 429 || error.status === 503 ? "Too busy" : "That did not work"),
    h("p", {}, capital(visible(error.message))),
    near.length && linkOf ? h("p", {}, "Did you mean ", near.map((name, place) => [place ? (place === near.length - 1 ? " or " : ", ") : "", linkOf(name)]), "?") : null,
    retry ? h("button", { type: "button", on: { click: retry } }, "Try again") : null);
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A horizontal bar of a share; the number stands beside it, for those who do not see it. */
export function bar(share, tone = "") {
  const clipped = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
  return h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: `bar-fill ${tone || toneOf(clipped)}`, style: { width: `${(clipped * 100).toFixed(1)}%` } }));
}

function toneOf(share) {
  return share > 0.97 ? "full" : share > 0.88 ? "high" : "";
}

/** Text to copy, with its button. */
export function copyable(text, label) {
  const button = h("button", { type: "button", class: "copy quiet", "aria-label": `Copy ${label}` }, icon("copy"), h("span", {}, "Copy"));
  button.addEventListener("click", async () => {
    const done = await copied(text);
    show(button, icon(done ? "check" : "alert"), h("span", {}, done ? "Copied" : "Select and copy"));
    announce(done ? `Copied ${label}` : "Copying is not allowed here");
    setTimeout(() => show(button, icon("copy"), h("span", {}, "Copy")), 2000);
  });
  return h("div", { class: "copyable" }, h("pre", { tabindex: "0", "aria-label": label }, h("code", {}, visible(text).replace(/\\u000a/g, "\n"))), button);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A table: `columns` are {title, class}, `rows` lists of cells. A column in which every cell is "–" is left out. */
export function table(caption, allColumns, allRows, attributes = {}) {
  const kept = allColumns.map((_, place) => !allRows.length || allRows.some((cells) => cells[place] !== "–"));
  const columns = allColumns.filter((_, place) => kept[place]);
  const rows = allRows.map((cells) => cells.filter((_, place) => kept[place]));
  return h("div", { class: "table-wrap", tabindex: "0", role: "group", "aria-label": caption },
    h("table", attributes,
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.class ?? "" }, column.title)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, place) =>
        place ? h("td", { class: columns[place].class ?? "" }, cell) : h("th", { scope: "row", class: columns[0].class ?? "" }, cell)))))));
}

/** Names and their values. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A select with its label. */
export function choice(id, label, options, value, onChange) {
  const select = h("select", { id, on: { change: () => onChange(select.value) } },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("div", { class: "field" }, h("label", { for: id }, label), select);
}

const ICONS = {
  anchor: ["M12 8v13", "M5 13H3a9 9 0 0 0 18 0h-2", "M9 11h6", "M12 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z"],
  alert: ["M12 4 2.5 20h19z", "M12 10v4.5", "M12 17.2v.3"],
  check: ["m5 12.5 4.5 4.5L19 7.5"],
  copy: ["M9 9h11v11H9z", "M15 9V4H4v11h5"],
  map: ["M4 4h7v7H4z", "M13.5 4H20v7h-6.5z", "M4 13.5h7V20H4z", "M13.5 13.5H20V20h-6.5z"],
  queue: ["M4 6h16", "M4 12h11", "M4 18h7"],
  live: ["M3 12h4l3-8 4 16 3-8h4"],
  tune: ["M4 7h9", "M17 7h3", "M15 4.5v5", "M4 17h3", "M11 17h9", "M9 14.5v5"],
  compare: ["M4 5h6v14H4z", "M14 5h6v14h-6z"],
  clock: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M12 7.5V12l3.5 2"],
  sun: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M12 2.5V5M12 19v2.5M2.5 12H5M19 12h2.5M5.3 5.3 7 7M17 17l1.7 1.7M18.7 5.3 17 7M7 17l-1.7 1.7"],
  moon: ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"],
  auto: ["M12 3a9 9 0 1 0 0 18z", "M12 3a9 9 0 0 1 0 18"],
  search: ["M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14z", "m16.2 16.2 4.3 4.3"],
};

/** A drawing of one stroke; it says nothing that text beside it does not. */
export function icon(name, extra = "") {
  return svg("svg", { class: `icon ${extra}`, viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    ICONS[name].map((d) => svg("path", { d })));
}
