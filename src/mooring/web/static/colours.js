/**
 * The colours of the map: ramps for shares, a palette for names, and the legend of both. Pure.
 *
 * A colouring is {kind, title, of(row) → index into `colours`, colours, entries: [{label, colour, count}]}.
 */

import { has, measured } from "./filter.js";
import { count, percent } from "./format.js";

const STEPS = 20;
const SHOWN_NAMES = 9;

// Names differ by lightness as well as hue, in both schemes, also by those who see few hues.
const NAMES = {
  light: ["#1f77a4", "#e08a1e", "#3f9b72", "#b4508f", "#7a6fc2", "#c9503c", "#5aaed0", "#8a7a3d", "#d99bb8"],
  dark: ["#57b4e0", "#f0a848", "#5cc79a", "#d77fb8", "#a79df0", "#ef7e6a", "#8fd5f0", "#c2b06a", "#f0bfd4"],
};
const OTHER = { light: "#9aa6b0", dark: "#6b7a86" };
const NONE = { light: "#c3ccd3", dark: "#46535e" };

// From calm to full: pale sea to deep blue, and amber to red only where a node is nearly full.
const RAMPS = {
  light: [[0, [205, 226, 234]], [0.5, [92, 165, 192]], [0.8, [28, 106, 142]], [0.92, [204, 130, 38]], [1, [184, 58, 44]]],
  dark: [[0, [38, 62, 76]], [0.5, [45, 122, 152]], [0.8, [102, 196, 226]], [0.92, [240, 176, 80]], [1, [244, 112, 94]]],
};

const MARKS = [0, 0.25, 0.5, 0.7, 0.8, 0.9, 1];

function mixed(stops, share) {
  const at = Math.min(1, Math.max(0, share));
  const upper = stops.findIndex(([place]) => place >= at);
  if (upper <= 0) return stops[0][1];
  const [[from, a], [to, b]] = [stops[upper - 1], stops[upper]];
  return a.map((each, index) => Math.round(each + ((b[index] - each) * (at - from)) / (to - from)));
}

export function rampColour(scheme, share) {
  return `rgb(${mixed(RAMPS[scheme], share).join(" ")})`;
}

/** The colour of a name in a fixed place of a list: series of charts. */
export function seriesColour(scheme, place) {
  return NAMES[scheme][place % NAMES[scheme].length];
}

/** What `color=` names: use:RESOURCE, zone, label:KEY, taints, fragmentation. */
export function colouring(choice, nodes, scheme) {
  const [kind, argument] = split(choice);
  if (kind === "fragmentation") return shares("Fragmentation", (row) => nodes.fragmentation[row] ?? 0, scheme);
  if (kind === "zone") return names("Zone", nodes.names.length, (row) => nodes.zones[row] ?? "", "no zone", scheme);
  if (kind === "taints") return names("Taints", nodes.names.length, (row) => taintKeys(nodes.taints[row]), "no taint", scheme);
  if (kind === "label") {
    return names(`Label ${argument}`, nodes.names.length, (row) => labelOf(nodes, row, argument), "without the label", scheme);
  }
  const resource = Object.hasOwn(nodes.allocatable, argument) ? argument : "cpu";
  const isAbsent = (row) => !has(nodes, resource, row);
  return shares(`Requested ${resource}`, (row) => measured(nodes, resource, "use", row), scheme, nodes.names.some((_, row) => isAbsent(row)) ? isAbsent : null);
}

/** The value of a label; "" where the node has none. */
export function labelOf(nodes, row, key) {
  const labels = nodes.labels[row] ?? {};
  return Object.hasOwn(labels, key) ? labels[key] : "";
}

function split(choice) {
  const at = choice.indexOf(":");
  return at < 0 ? [choice, ""] : [choice.slice(0, at), choice.slice(at + 1)];
}

function taintKeys(taints) {
  return [...new Set((taints ?? []).map((taint) => taint.split(/[=:]/)[0]))].sort().join(", ");
}

/** `isAbsent(row)`: there is nothing of which a share could be taken. The legend has a mark wherever the ramp turns. */
function shares(title, read, scheme, isAbsent = null) {
  const colours = [...Array.from({ length: STEPS + 1 }, (_, step) => rampColour(scheme, step / STEPS)), NONE[scheme]];
  const of = (row) => (isAbsent?.(row) ? STEPS + 1 : Math.round(Math.min(1, Math.max(0, read(row))) * STEPS));
  const entries = MARKS.map((share) => ({ label: percent(share), colour: rampColour(scheme, share) }));
  if (isAbsent) entries.push({ label: "none", colour: NONE[scheme] });
  return { kind: "ramp", title, of, colours, entries };
}

function names(title, length, read, absent, scheme) {
  const counts = new Map();
  for (let row = 0; row < length; row += 1) counts.set(read(row), (counts.get(read(row)) ?? 0) + 1);
  const present = [...counts.keys()].filter((name) => name !== "");
  const frequent = present.sort((a, b) => counts.get(b) - counts.get(a) || a.localeCompare(b)).slice(0, SHOWN_NAMES);
  // By name, not by frequency: a colour keeps its name while counts change.
  const shown = [...frequent].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const places = new Map(shown.map((name, place) => [name, place]));
  const colours = [...shown.map((_, place) => NAMES[scheme][place]), OTHER[scheme], NONE[scheme]];
  const of = (row) => (read(row) === "" ? shown.length + 1 : (places.get(read(row)) ?? shown.length));
  const entries = shown.map((name, place) => ({ label: name, colour: colours[place], count: counts.get(name) }));
  const others = present.length > shown.length ? length - (counts.get("") ?? 0) - sum(shown.map((name) => counts.get(name))) : 0;
  if (others) entries.push({ label: `${count(counts.size - shown.length - (counts.has("") ? 1 : 0))} others`, colour: OTHER[scheme], count: others });
  if (counts.has("")) entries.push({ label: absent, colour: NONE[scheme], count: counts.get("") });
  return { kind: "names", title, of, colours, entries };
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
