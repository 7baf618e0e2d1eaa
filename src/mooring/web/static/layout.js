/**
 * Where nodes are on the map: squares in rows, grouped, as large as the space allows. Pure.
 *
 * The area of a square is in proportion to its weight. Rows are filled from the left, the largest first; smaller squares stand below
 * each other beside the large ones. The order is that of the groups' rows, and a node keeps its place while others are filtered or recoloured.
 */

const GAP = 0.12; // of the side of a square, at least a pixel
const LEAST_SHARE = 0.25; // of the largest side: small nodes stay visible
export const HEADING = 26;
const GROUP_GAP = 14;
const LEAST_COLUMN = 220; // as wide as a heading
const MOST_COLUMNS = 6;

/**
 * Lays out `weights` (one a node) in `width` × `height`. `groups` is a list of {name, rows}; they stand side by side where that makes
 * squares larger. Returns {x, y, side: Float32Array, height, unit, headings: [{name, x, y, width, count}]}; `height` exceeds the given one
 * where squares would become smaller than `least`.
 */
export function laidOut(weights, groups, width, height, { least = 7, most = 280 } = {}) {
  const sides = relativeSides(weights);
  const ordered = groups.map((group) => ({ ...group, rows: [...group.rows].sort((a, b) => sides[b] - sides[a]) }));
  let best = null;
  for (let columns = 1; columns <= columnsFor(groups.length, width); columns += 1) {
    const widest = Math.max(least, Math.min(most, columnWidth(width, columns)));
    const unit = largestUnit((each) => packed(ordered, sides, each, width, columns).height, height, least, widest);
    const total = packed(ordered, sides, unit, width, columns).height;
    if (best === null || unit > best.unit || (unit === best.unit && total < best.total)) best = { columns, unit, total };
  }
  const [x, y, side] = [new Float32Array(weights.length), new Float32Array(weights.length), new Float32Array(weights.length)];
  const found = packed(ordered, sides, best.unit, width, best.columns, (row, left, top, size) => {
    [x[row], y[row], side[row]] = [left, top, size];
  });
  return { x, y, side, height: Math.ceil(found.height), unit: best.unit, headings: found.headings };
}

function columnsFor(groups, width) {
  return Math.max(1, Math.min(groups, MOST_COLUMNS, Math.floor(width / LEAST_COLUMN)));
}

function columnWidth(width, columns) {
  return (width - (columns - 1) * GROUP_GAP) / columns;
}

/** The largest unit with which all fit, in quarters of a pixel where these fit as well. */
function largestUnit(heightOf, height, least, most) {
  let [low, high] = [least, most];
  if (heightOf(least) >= height) return least;
  for (let step = 0; step < 14; step += 1) {
    const middle = (low + high) / 2;
    if (heightOf(middle) <= height) low = middle;
    else high = middle;
  }
  const rounded = Math.max(least, Math.floor(low * 4) / 4);
  return heightOf(rounded) <= height ? rounded : low;
}

function relativeSides(weights) {
  let largest = 0;
  for (const weight of weights) largest = Math.max(largest, weight);
  return Float32Array.from(weights, (weight) => (largest > 0 ? Math.max(LEAST_SHARE, Math.sqrt(Math.max(0, weight) / largest)) : 1));
}

function gapOf(unit) {
  return Math.max(1, Math.min(8, Math.round(unit * GAP)));
}

/** All groups, so many beside each other: {height, headings}. `put(row, left, top, side)` is called for each square. */
function packed(groups, sides, unit, width, columns, put = null) {
  const hasHeadings = groups.length > 1;
  const each = columnWidth(width, columns);
  const headings = [];
  let [top, band] = [0, 0];
  groups.forEach((group, place) => {
    const column = place % columns;
    if (column === 0) [top, band] = [top + band, 0];
    const left = column * (each + GROUP_GAP);
    if (hasHeadings) headings.push({ name: group.name, x: left, y: top, width: each, count: group.rows.length });
    const above = top + (hasHeadings ? HEADING : 0);
    const inner = packedGroup(group.rows, sides, unit, each, put && ((row, x, y, side) => put(row, left + x, above + y, side)));
    band = Math.max(band, inner + (hasHeadings ? HEADING + GROUP_GAP : 0));
  });
  return { height: top + band, headings };
}

/** One group, its largest first: shelves, on which a square that is small enough stands below the one before it. The height. */
function packedGroup(rows, sides, unit, width, put) {
  const gap = gapOf(unit);
  let [top, shelf, left, column, below] = [0, 0, 0, 0, 0];
  for (const row of rows) {
    const side = sides[row] * unit;
    if (column > 0 && below + side <= shelf + 0.01) {
      put?.(row, left, top + below, side);
      below += side + gap;
      continue;
    }
    left = column > 0 ? left + column + gap : 0;
    if (left > 0 && left + side > width) [top, left] = [top + shelf + gap, 0];
    if (left === 0) shelf = side;
    put?.(row, left, top, side);
    [column, below] = [side, side + gap];
  }
  return top + shelf;
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

/** Per row its place when names are sorted, numbers within them as numbers: node-2 before node-10. */
export function ranks(names) {
  const collator = new Intl.Collator("en", { numeric: true });
  const sorted = names.map((_, row) => row).sort((a, b) => collator.compare(names[a], names[b]));
  const found = new Int32Array(names.length);
  sorted.forEach((row, place) => {
    found[row] = place;
  });
  return found;
}
