import assert from "node:assert/strict";
import { test } from "node:test";
import { compiled, FilterError, nearest } from "./static/filter.js";

const GiB = 1024 ** 3;
const nodes = {
  names: ["node-1", "node-2", "gpu-1"],
  ready: [true, false, true],
  unschedulable: [false, true, false],
  zones: ["eu-a", "eu-b", "us-a"],
  labels: [{ tier: "front", constructor: "x" }, { tier: "back" }, {}],
  taints: [[], [], ["gpu=true:NoSchedule"]],
  pods: [3, 0, 10],
  fragmentation: [0.1, 0.5, 0],
  allocatable: { cpu: [4000, 8000, 32000], memory: [16 * GiB, 32 * GiB, 128 * GiB], "nvidia.com/gpu": [0, 0, 8] },
  requested: { cpu: [3500, 0, 16000], memory: [GiB, 0, 64 * GiB], "nvidia.com/gpu": [0, 0, 4] },
};

const found = (text) => {
  const predicate = compiled(text, nodes);
  return nodes.names.filter((_, row) => predicate(nodes, row)).join(" ");
};

const MATCHES = {
  "": "node-1 node-2 gpu-1",
  "zone=eu-a": "node-1",
  "zone=EU-A": "node-1",
  "zone=eu-*": "node-1 node-2",
  "zone=*-a": "node-1 gpu-1",
  "zone!=eu-a": "node-2 gpu-1",
  "name~ode": "node-1 node-2",
  "name!~ode": "gpu-1",
  "gpu": "gpu-1",
  "cpu.free>2": "node-2 gpu-1",
  "cpu.free>=500m": "node-1 node-2 gpu-1",
  "cpu.free=500m": "node-1",
  "cpu.use>50%": "node-1",
  "cpu.use>=0.5": "node-1 gpu-1",
  "cpu.use>=50": "node-1 gpu-1",
  "memory.free>=32Gi": "node-2 gpu-1",
  "memory.requested=0": "node-2",
  "nvidia.com/gpu.free>0": "gpu-1",
  "gpu.free>0": "gpu-1",
  "taint=gpu": "gpu-1",
  'taint="gpu=true"': "gpu-1",
  "taint=NoSchedule": "gpu-1",
  "taint!=gpu": "node-1 node-2",
  "label.tier=front": "node-1",
  "label:tier=back": "node-2",
  "label=tier": "node-1 node-2",
  "label.constructor=x": "node-1",
  "label.toString=x": "",
  "ready=false": "node-2",
  "cordoned=yes": "node-2",
  "pods>2": "node-1 gpu-1",
  "fragmentation>20%": "node-2",
  "zone=eu-a or zone=us-a": "node-1 gpu-1",
  "zone=eu-* and cpu.free>2": "node-2",
  "zone=eu-* cpu.free>2": "node-2",
  "not zone=eu-a and not taint=gpu": "node-2",
  "zone=us-a or zone=eu-a and cpu.free>2": "gpu-1",
  "(zone=us-a or zone=eu-a) and cpu.free<1": "node-1",
};

for (const [text, expected] of Object.entries(MATCHES)) {
  test(`“${text}” finds ${expected || "nothing"}`, () => assert.equal(found(text), expected));
}

const MISTAKES = {
  "zon=a": [/no field “zon”\. Did you mean zone\?/, 0, 3],
  "qqqqqqqq=a": [/Fields are name, zone/, 0, 8],
  "cpu>2": [/“cpu” needs a measure\. Write cpu\.free/, 0, 3],
  "cpu.fre>2": [/“fre” is not measured/, 0, 7],
  "cpu.free>two": [/“two” is not an amount of cpu/, 9, 12],
  "memory.free>8": [/needs a unit: 8Gi/, 12, 13],
  "cpu.use>2Gi": [/not a share\. Write 80%/, 8, 11],
  "zone>a": [/“>” compares numbers/, 4, 5],
  "cpu.free~2": [/looks for text/, 8, 9],
  "zone=": [/A value is missing after “zone=”/, 4, 5],
  "zone=a and": [/ends too early/, 10, 11],
  "and zone=a": [/missing before “and”/, 0, 3],
  "=a": [/missing before “=”/, 0, 1],
  "(zone=a": [/not closed/, 0, 1],
  "zone=a)": [/no opening one/, 6, 7],
  'zone="a': [/quotation mark is not closed/, 5, 6],
  "zone=a !": [/“!” is not expected/, 7, 8],
  "ready=maybe": [/Write true or false/, 6, 11],
  "ready>true": [/Only = and !=/, 5, 6],
};

for (const [text, [message, from, to]] of Object.entries(MISTAKES)) {
  test(`“${text}” is a mistake with its place`, () => {
    assert.throws(() => found(text), (error) => {
      assert.ok(error instanceof FilterError, String(error));
      assert.match(error.message, message);
      assert.deepEqual([error.from, error.to], [from, to]);
      return true;
    });
  });
}

test("names that are not similar are not proposed", () => {
  assert.equal(nearest("zonne", ["zone", "taint"]), "zone");
  assert.equal(nearest("abcdef", ["zone", "taint"]), undefined);
});

test("5,000 nodes are filtered within a frame or two", () => {
  const many = { ...nodes, names: Array.from({ length: 5000 }, (_, row) => `node-${row}`) };
  for (const column of ["ready", "unschedulable", "zones", "labels", "taints", "pods", "fragmentation"]) many[column] = many.names.map((_, row) => nodes[column][row % 3]);
  for (const kind of ["allocatable", "requested"]) many[kind] = Object.fromEntries(Object.entries(nodes[kind]).map(([key, column]) => [key, many.names.map((_, row) => column[row % 3])]));
  const predicate = compiled("zone=eu-* and cpu.free>2 and not taint=gpu", many);
  assert.equal(many.names.filter((_, row) => predicate(many, row)).length, 1667);
});
