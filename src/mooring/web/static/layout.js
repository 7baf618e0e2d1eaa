/**
 * Where nodes are on the map: squares in rows, grouped, as large as the space allows. Pure.
 *
 * The area of a square is in proportion to its weight. Rows are filled from the left, the largest first, so that squares of
 * like size stand together; the order is stable, and a node keeps its place while others are filtered or recoloured.
 */

const GAP = 0.12; // of the side of a square, at least a pixel
const LEAST_SHARE = 0.25; // of the largest side: small nodes stay visible
export const HEADING = 26;
const GROUP_GAP = 14;

/**
 * Lays out `weights` (one a node) in `width` × `height`. `groups` is a list of {name, rows}.
 * Returns {x, y, side: Float32Array, height, unit, headings: [{name, y, count}]}; `height` exceeds the given one where squares would
 * become smaller than `least`.
 */
export function laidOut(weights, groups, width, height, { least = 7, most = 280 } = {}) {
  const sides = relativeSides(weights);
  const ordered = groups.map((group) => ({ ...group, rows: bySize(group.rows, sides) }));
  const hasHeadings = groups.length > 1;
  let [low, high] = [least, most];
  if (heightOf(ordered, sides, least, width, hasHeadings) < height) {
    for (let step = 0; step < 14; step += 1) {
      const middle = (low + high) / 2;
      if (heightOf(ordered, sides, middle, width, hasHeadings) <= height) low = middle;
      else high = middle;
    }
  }
  return placed(ordered, sides, Math.max(least, Math.floor(low * 4) / 4), width, hasHeadings, weights.length);
}

function relativeSides(weights) {
  let largest = 0;
  for (const weight of weights) largest = Math.max(largest, weight);
  return Float32Array.from(weights, (weight) => (largest > 0 ? Math.max(LEAST_SHARE, Math.sqrt(Math.max(0, weight) / largest)) : 1));
}

function bySize(rows, sides) {
  return [...rows].sort((a, b) => sides[b] - sides[a] || a - b);
}

function gapOf(unit) {
  return Math.max(1, Math.min(8, Math.round(unit * GAP)));
}

function heightOf(groups, sides, unit, width, hasHeadings) {
  const gap = gapOf(unit);
  let total = 0;
  for (const group of groups) {
    if (hasHeadings) total += HEADING;
    let [x, shelf] = [0, 0];
    for (const row of group.rows) {
      const side = sides[row] * unit;
      if (x > 0 && x + side > width) {
        total += shelf + gap;
        [x, shelf] = [0, 0];
      }
      shelf = Math.max(shelf, side);
      x += side + gap;
    }
    total += shelf + (hasHeadings ? GROUP_GAP : 0);
  }
  return total;
}

function placed(groups, sides, unit, width, hasHeadings, length) {
  const [x, y, side] = [new Float32Array(length), new Float32Array(length), new Float32Array(length)];
  const gap = gapOf(unit);
  const headings = [];
  let top = 0;
  for (const group of groups) {
    if (hasHeadings) {
      headings.push({ name: group.name, y: top, count: group.rows.length });
      top += HEADING;
    }
    let [left, shelf] = [0, 0];
    for (const row of group.rows) {
      const size = sides[row] * unit;
      if (left > 0 && left + size > width) {
        top += shelf + gap;
        [left, shelf] = [0, 0];
      }
      [x[row], y[row], side[row]] = [left, top, size];
      shelf = Math.max(shelf, size);
      left += size + gap;
    }
    top += shelf + (hasHeadings ? GROUP_GAP : 0);
  }
  return { x, y, side, height: Math.ceil(top), unit, headings };
}

/** Rows by a key, in the order of the keys: numbers within names count as numbers. */
export function grouped(length, keyOf) {
  const found = new Map();
  for (let row = 0; row < length; row += 1) {
    const key = keyOf(row);
    const rows = found.get(key);
    if (rows) rows.push(row);
    else found.set(key, [row]);
  }
  const names = [...found.keys()].sort((a, b) => (a === "") - (b === "") || a.localeCompare(b, "en", { numeric: true }));
  return names.map((name) => ({ name, rows: found.get(name) }));
}

/** The row at a point; -1 where there is none. */
export function rowAt(layout, px, py) {
  const { x, y, side } = layout;
  for (let row = 0; row < x.length; row += 1) {
    if (px >= x[row] && px < x[row] + side[row] && py >= y[row] && py < y[row] + side[row]) return row;
  }
  return -1;
}

/** The nearest row in a direction ("left", "right", "up", "down") among those that `isShown`; the same row where there is none. */
export function neighbour(layout, from, direction, isShown) {
  const { x, y, side } = layout;
  const [cx, cy] = [x[from] + side[from] / 2, y[from] + side[from] / 2];
  let [best, least] = [from, Infinity];
  for (let row = 0; row < x.length; row += 1) {
    if (row === from || !isShown(row)) continue;
    const [dx, dy] = [x[row] + side[row] / 2 - cx, y[row] + side[row] / 2 - cy];
    const [along, across] = direction === "left" ? [-dx, dy] : direction === "right" ? [dx, dy] : direction === "up" ? [-dy, dx] : [dy, dx];
    if (along < 1) continue;
    const distance = along + Math.abs(across) * 3;
    if (distance < least) [best, least] = [row, distance];
  }
  return best;
}
