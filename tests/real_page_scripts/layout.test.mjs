import assert from "node:assert/strict";
import { test } from "node:test";
import { grouped, laidOut, neighbour, ranks, rowAt } from "./static/layout.js";

const all = (length) => [{ name: "", rows: [...Array(length).keys()] }];

test("squares fill the space and stay inside it", () => {
  for (const length of [1, 5, 22, 300, 5000]) {
    const layout = laidOut(Array(length).fill(4), all(length), 900, 600);
    assert.ok(layout.height <= 600 || layout.unit === 7, `${length}: ${layout.height}`);
    for (let row = 0; row < length; row += 1) assert.ok(layout.x[row] >= 0 && layout.x[row] + layout.side[row] <= 900.5);
  }
});

test("squares do not overlap", () => {
  const weights = Array.from({ length: 120 }, (_, row) => [4, 8, 32, 64][row % 4]);
  const { x, y, side } = laidOut(weights, all(120), 500, 400);
  for (let a = 0; a < 120; a += 1) {
    for (let b = a + 1; b < 120; b += 1) {
      const isApart = x[a] + side[a] <= x[b] + 0.01 || x[b] + side[b] <= x[a] + 0.01 || y[a] + side[a] <= y[b] + 0.01 || y[b] + side[b] <= y[a] + 0.01;
      assert.ok(isApart, `${a} and ${b}`);
    }
  }
});

test("the area is in proportion to the weight, but for the smallest", () => {
  const { side } = laidOut([64, 16, 0], all(3), 900, 600);
  assert.ok(Math.abs(side[0] ** 2 / side[1] ** 2 - 4) < 0.01);
  assert.ok(side[2] > 0);
});

test("more nodes than the space holds make it higher", () => {
  const layout = laidOut(Array(5000).fill(1), all(5000), 200, 200);
  assert.equal(layout.unit, 7);
  assert.ok(layout.height > 200);
});

test("groups have headings in order, those without a name last", () => {
  const groups = grouped(4, (row) => ["zone-10", "zone-2", "", "zone-2"][row]);
  assert.deepEqual(groups.map((group) => [group.name, group.rows.length]), [["zone-2", 2], ["zone-10", 1], ["", 1]]);
  const layout = laidOut([1, 1, 1, 1], groups, 400, 400);
  assert.deepEqual(layout.headings.map((heading) => heading.count), [2, 1, 1]);
});

test("a point finds its square, or none", () => {
  const layout = laidOut([1, 1], all(2), 400, 100);
  assert.equal(rowAt(layout, layout.x[1] + 1, layout.y[1] + 1), 1);
  assert.equal(rowAt(layout, 399, 99), -1);
});

test("neighbours are found in each direction, and only among those shown", () => {
  const layout = laidOut([1, 1, 1, 1], all(4), 220, 230);
  assert.equal(layout.y[0] < layout.y[2], true);
  assert.equal(neighbour(layout, 0, "right", () => true), 1);
  assert.equal(neighbour(layout, 0, "down", () => true), 2);
  assert.equal(neighbour(layout, 3, "up", () => true), 1);
  assert.equal(neighbour(layout, 0, "left", () => true), 0);
  assert.equal(neighbour(layout, 0, "right", () => false), 0);
});

const filled = (layout, width) => layout.side.reduce((area, each) => area + each * each, 0) / (width * layout.height);

test("small squares stand beside large ones without large gaps", () => {
  const weights = [...Array(4).fill(64), ...Array(18).fill(4)];
  const layout = laidOut(weights, all(22), 900, 500);
  assert.ok(filled(layout, 900) > 0.6, String(filled(layout, 900)));
});

test("small groups stand side by side", () => {
  const groups = grouped(22, (row) => `zone-${row % 3}`);
  const layout = laidOut(Array(22).fill(4), groups, 900, 500);
  assert.equal(new Set(layout.headings.map(({ y }) => y)).size, 1);
  assert.ok(filled(layout, 900) > 0.5, String(filled(layout, 900)));
  for (let row = 0; row < 22; row += 1) assert.ok(layout.x[row] + layout.side[row] <= 900.5);
});

test("a large square is no wider than its column", () => {
  const groups = grouped(22, (row) => (row < 4 ? `zone-${row}` : "rest"));
  const layout = laidOut(Array.from({ length: 22 }, (_, row) => (row < 4 ? 64 : 4)), groups, 940, 600);
  for (const { x, width, name } of layout.headings) {
    const rows = groups.find((group) => group.name === name).rows;
    for (const row of rows) assert.ok(layout.x[row] + layout.side[row] <= x + width + 0.5, name);
  }
});

test("numbers within names count as numbers", () => {
  assert.deepEqual([...ranks(["node-1", "node-10", "node-2", "gpu"])], [1, 3, 2, 0]);
  const rank = ranks(["node-1", "node-10", "node-2"]);
  const { x } = laidOut([1, 1, 1], [{ name: "", rows: [0, 1, 2].sort((a, b) => rank[a] - rank[b]) }], 900, 100);
  assert.ok(x[0] < x[2] && x[2] < x[1]);
});
