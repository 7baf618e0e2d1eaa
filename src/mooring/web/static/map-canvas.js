/** The map's canvas: one pass a colour, so that 5,000 nodes are redrawn within a frame. */

import { oncePerFrame } from "./dom.js";
import { percent } from "./format.js";
import { HEADING, laidOut, neighbour, rowAt } from "./layout.js";

const LABELLED = 40; // pixels from which a square has room for its name
const DIMMED = 0.14;
const EDGE = 4; // around the squares, for the ring of the outermost

/**
 * `model` is {nodes, weights, groups, colouring, fill(row) → 0..1, matches: Uint8Array, hasFilter}.
 * Callbacks: onPoint(row or -1, place), onOpen(row).
 */
export class MapCanvas {
  layout = null;
  #model = null;
  #active = -1;
  #size = { width: 0, height: 0 };

  constructor(canvas, room, { onPoint, onOpen }) {
    this.canvas = canvas;
    this.room = room;
    this.draw = oncePerFrame(() => this.paint());
    this.#observer = new ResizeObserver(() => this.resize());
    this.#observer.observe(room);
    canvas.addEventListener("pointermove", (event) => onPoint(this.#rowOf(event), event));
    canvas.addEventListener("pointerleave", () => onPoint(-1, null));
    canvas.addEventListener("click", (event) => {
      const row = this.#rowOf(event);
      if (row >= 0) onOpen(row);
    });
  }

  #observer;

  dispose() {
    this.#observer.disconnect();
  }

  /** Another model. `isPlaced`: squares keep their places, as when only colours or matches changed. */
  set(model, isPlaced = false) {
    this.#model = model;
    if (!isPlaced || this.layout === null) this.resize();
    else this.draw();
  }

  /** The square with the ring around it. */
  activate(row) {
    this.#active = row;
    this.draw();
  }

  /** The nearest match in a direction. */
  beside(row, direction) {
    return neighbour(this.layout, row, direction, (each) => this.#model.matches[each] === 1);
  }

  resize() {
    if (this.#model === null) return;
    const width = this.room.clientWidth;
    const height = this.room.clientHeight;
    if (!width) return;
    const labelled = { least: this.#model.least ?? 7 };
    this.layout = laidOut(this.#model.weights, this.#model.groups, width - 2 * EDGE, height - 2 * EDGE, labelled);
    this.#size = { width, height: this.layout.height + 2 * EDGE };
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.#size.height * ratio);
    this.canvas.style.setProperty("width", `${width}px`);
    this.canvas.style.setProperty("height", `${this.#size.height}px`);
    this.draw();
  }

  #rowOf(event) {
    if (this.layout === null) return -1;
    const box = this.canvas.getBoundingClientRect();
    return rowAt(this.layout, event.clientX - box.left - EDGE, event.clientY - box.top - EDGE);
  }

  paint() {
    if (this.#model === null || this.layout === null) return;
    const started = performance.now();
    const context = this.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    const style = getComputedStyle(this.room);
    const colour = (name) => style.getPropertyValue(name).trim();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.#size.width, this.#size.height);
    context.translate(EDGE, EDGE);
    this.#squares(context, colour("--tile-empty"));
    this.#marks(context, colour("--bad"), colour("--text"));
    this.#headings(context, colour("--text"), colour("--muted"));
    if (this.layout.unit >= LABELLED) this.#labels(context, colour("--text"), colour("--surface"));
    if (this.#active >= 0 && this.#active < this.layout.x.length) this.#ring(context, this.#active, colour("--focus"), colour("--surface"));
    this.canvas.dataset.paint = (performance.now() - started).toFixed(1);
  }

  #squares(context, emptyColour) {
    const { x, y, side } = this.layout;
    const { colouring, fill, matches } = this.#model;
    const buckets = colouring.colours.map(() => [[], []]);
    for (let row = 0; row < x.length; row += 1) buckets[colouring.of(row)][matches[row]].push(row);
    for (const isMatch of [0, 1]) {
      // Space that is free, below what is requested.
      context.globalAlpha = isMatch ? 1 : DIMMED;
      context.fillStyle = emptyColour;
      context.beginPath();
      for (const bucket of buckets) for (const row of bucket[isMatch]) context.rect(x[row], y[row], side[row], side[row]);
      context.fill();
      for (const [place, bucket] of buckets.entries()) {
        if (!bucket[isMatch].length) continue;
        context.fillStyle = colouring.colours[place];
        context.globalAlpha = isMatch ? 0.32 : DIMMED * 0.5;
        context.beginPath();
        for (const row of bucket[isMatch]) context.rect(x[row], y[row], side[row], side[row]);
        context.fill();
        context.globalAlpha = isMatch ? 1 : DIMMED;
        context.beginPath();
        for (const row of bucket[isMatch]) {
          const level = Math.min(1, Math.max(0, fill(row) || 0)) * side[row];
          context.rect(x[row], y[row] + side[row] - level, side[row], level);
        }
        context.fill();
      }
    }
    context.globalAlpha = 1;
  }

  /** Cordoned nodes are struck through; a frame surrounds those that are not ready. */
  #marks(context, bad, text) {
    const { x, y, side } = this.layout;
    const { nodes, matches } = this.#model;
    for (let row = 0; row < x.length; row += 1) {
      if (!matches[row]) continue;
      const edge = Math.max(1, side[row] / 16);
      if (nodes.unschedulable[row]) {
        context.strokeStyle = text;
        context.lineWidth = edge;
        context.beginPath();
        context.moveTo(x[row] + edge, y[row] + edge);
        context.lineTo(x[row] + side[row] - edge, y[row] + side[row] - edge);
        context.stroke();
      }
      if (!nodes.ready[row]) {
        context.strokeStyle = bad;
        context.lineWidth = Math.max(1.5, edge);
        context.strokeRect(x[row] + 1, y[row] + 1, side[row] - 2, side[row] - 2);
      }
    }
  }

  #headings(context, text, muted) {
    context.textBaseline = "middle";
    for (const { name, x, y, width: room, count } of this.layout.headings) {
      context.font = "600 13px system-ui, sans-serif";
      context.fillStyle = text;
      const shown = name || "none";
      const width = Math.min(context.measureText(shown).width, room - 40);
      context.fillText(shown, x, y + HEADING / 2 - 2, room - 40);
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = muted;
      context.fillText(String(count), x + width + 8, y + HEADING / 2 - 2);
    }
  }

  #labels(context, text, halo) {
    const { x, y, side } = this.layout;
    const { nodes, fill, matches } = this.#model;
    context.textBaseline = "top";
    context.lineJoin = "round";
    for (let row = 0; row < x.length; row += 1) {
      if (side[row] < LABELLED) continue;
      context.globalAlpha = matches[row] ? 1 : 0.4;
      const size = side[row] > 150 ? 15 : side[row] > 90 ? 13 : 10.5;
      const inset = side[row] > 60 ? 8 : 4;
      context.font = `600 ${size}px system-ui, sans-serif`;
      this.#text(context, shortened(context, nodes.names[row], side[row] - inset * 2), x[row] + inset, y[row] + inset, text, halo);
      context.font = `${size}px system-ui, sans-serif`;
      this.#text(context, Number.isNaN(fill(row)) ? "none" : percent(fill(row)), x[row] + inset, y[row] + inset + 3 + size, text, halo);
    }
    context.globalAlpha = 1;
  }

  #text(context, shown, px, py, colour, halo) {
    context.lineWidth = 4;
    context.strokeStyle = halo;
    context.strokeText(shown, px, py);
    context.fillStyle = colour;
    context.fillText(shown, px, py);
  }

  #ring(context, row, focus, surface) {
    const { x, y, side } = this.layout;
    context.lineWidth = 5;
    context.strokeStyle = surface;
    context.strokeRect(x[row] - 1, y[row] - 1, side[row] + 2, side[row] + 2);
    context.lineWidth = 2.5;
    context.strokeStyle = focus;
    context.strokeRect(x[row] - 1.5, y[row] - 1.5, side[row] + 3, side[row] + 3);
  }
}

/** The text, cut in its middle where it is too wide: names differ at their ends. */
function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let kept = text.length - 1;
  while (kept > 4 && context.measureText(cut(text, kept)).width > width) kept -= 1;
  return cut(text, kept);
}

function cut(text, kept) {
  const end = Math.ceil(kept / 2);
  return `${text.slice(0, kept - end)}…${text.slice(text.length - end)}`;
}
