/** Scores as stacked bars per node, with the same numbers as a table. */

import { seriesColour } from "./colours.js";
import { h, newId, show } from "./dom.js";
import { count, counted, visible } from "./format.js";
import { scheme } from "./theme.js";
import { nodeLink, table } from "./widgets.js";

/**
 * `scores` is {plugins: [{name, weight}], nodes: [{name, total, parts: [{raw, normalized, weighted}]}]}.
 * `chosen` is marked. `nodeName` makes the name of a node, which may not exist. Plugins that give every node the same are named, not
 * drawn: bars show what decides.
 */
export function scoreBars(scores, { chosen = null, own = null, highest = null, more = null, nodeName = nodeLink } = {}) {
  const { plugins, nodes } = scores;
  const placed = plugins.map((plugin, place) => ({ ...plugin, place, isSilent: !nodes.some((node) => node.parts[place]?.weighted) }));
  const drawn = placed.filter(({ isSilent, isSame }) => !isSilent && !isSame);
  const same = placed.filter(({ isSilent, isSame }) => !isSilent && isSame);
  const silent = placed.filter(({ isSilent }) => isSilent);
  const pointsOf = (node) => drawn.reduce((total, { place }) => total + (node.parts[place]?.weighted ?? 0), 0);
  const top = highest ?? Math.max(1, ...nodes.map(pointsOf));
  const id = newId("score-table");
  const numbers = h("div", { id, hidden: true });
  const toggle = h("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": id }, "Show numbers");
  toggle.addEventListener("click", () => {
    numbers.hidden = !numbers.hidden;
    toggle.setAttribute("aria-expanded", String(!numbers.hidden));
    toggle.textContent = numbers.hidden ? "Show numbers" : "Hide numbers";
    if (!numbers.firstChild) show(numbers, scoreTable(scores, nodeName));
  });
  return h("div", { class: "scores" },
    h("ul", { class: "series" }, drawn.map((plugin) => h("li", {}, h("span", { class: "swatch", "aria-hidden": "true", style: { "background-color": seriesColour(scheme(), plugin.place) } }),
      h("span", {}, visible(plugin.name)), h("span", { class: "note" }, `×${plugin.weight}`)))),
    h("ol", { class: "score-rows" }, nodes.map((node) => h("li", { class: node.name === chosen ? "chosen" : "" },
      h("span", { class: "score-name" }, nodeName(node.name), node.name === chosen ? h("span", { class: "badge good" }, "chosen") : node.name === own ? h("span", { class: "badge" }, "runs here") : null),
      h("span", { class: "score-bar", role: "img", "aria-label": partsText(drawn, node) }, drawn.map((plugin) => segment(plugin, node, top))),
      h("span", { class: "number score-total" }, count(node.total))))),
    same.length ? h("p", { class: "note" }, `Every node gets the same from ${same.map(({ name, place }) => `${visible(name)} (${count(nodes[0].parts[place].weighted)})`).join(", ")}: the bars leave it out.`) : null,
    silent.length ? h("p", { class: "note" }, `No points from ${silent.map((plugin) => plugin.name).join(", ")}.`) : null,
    h("div", { class: "row" }, toggle, more), numbers);
}

function segment(plugin, node, top) {
  const points = node.parts[plugin.place]?.weighted ?? 0;
  const width = Math.max(0, (100 * points) / top);
  const text = `${plugin.name}: ${count(points)}`;
  return h("span", { class: "segment", title: text, style: { width: `${width}%`, "background-color": seriesColour(scheme(), plugin.place) } },
    width > 7 ? h("span", { "aria-hidden": "true" }, count(points)) : null);
}

function partsText(drawn, node) {
  return `${node.name}: ${drawn.map((plugin) => `${plugin.name} ${node.parts[plugin.place]?.weighted ?? 0}`).join(", ")}`;
}

/** Plugins × nodes: raw, of 100, weighted. */
export function scoreTable({ plugins, nodes }, nodeName = nodeLink) {
  return table("Scores: raw, of 100, and with the weight", [{ title: "Node" }, { title: "Total", class: "number" }, ...plugins.map((plugin) => ({ title: `${plugin.name} ×${plugin.weight}`, class: "number" }))],
    nodes.map((node) => [nodeName(node.name), count(node.total), ...node.parts.map((part) => partCell(part))]));
}

function partCell({ raw, normalized, weighted }) {
  return h("span", { title: `raw ${raw}, of 100: ${normalized}, weighted: ${weighted}` }, `${raw} / ${normalized} / `, h("strong", {}, String(weighted)));
}

/** The document of `explain` has scores by plugin; the bars take columns. */
export function inColumns(rows) {
  const plugins = (rows[0]?.scores ?? []).map(({ plugin, weight }) => ({ name: plugin, weight }));
  return { plugins, nodes: rows.map((row) => ({ name: row.node, total: row.total, parts: row.scores })) };
}

export function scoredSentence(scores) {
  const shown = scores.nodes.length;
  const all = scores.scoredNodes ?? shown;
  return all > shown ? `The best ${count(shown)} of ${counted(all, "node")} that were scored.` : `${counted(all, "node")} scored.`;
}
