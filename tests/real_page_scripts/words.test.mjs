import assert from "node:assert/strict";
import { test } from "node:test";
import { colouring } from "./static/colours.js";
import { EventParser } from "./static/events.js";
import { ago, amount, clock, count, counted, duration, listed, percent, signed, visible } from "./static/format.js";
import { quantity } from "./static/quantities.js";
import { address, packed, parsed, podParts, tokenIn, unpacked } from "./static/routes.js";
import { countsOf, kindsOf, paramsOf, requestOf, stateOf, weightsOf } from "./static/what-if-state.js";
import { written } from "./static/yaml.js";

const same = (cases) => {
  for (const [found, expected] of cases) assert.deepEqual(found, expected);
};
const plain = (text) => text.replace(/\u00a0/g, " ");

test("amounts are written with the units of people", () => same([
  [count(1234567), "1,234,567"], [counted(1, "node"), "1 node"], [counted(5000, "node"), "5,000 nodes"],
  [amount("cpu", 250), "250m"], [amount("cpu", 1000), "1 core"], [amount("cpu", 59000), "59 cores"], [amount("cpu", 0), "0 cores"],
  [amount("memory", 16 * 1024 ** 3), "16 GiB"], [amount("memory", 1536 * 1024 ** 2), "1.5 GiB"], [amount("hugepages-2Mi", 2048), "2 KiB"],
  [amount("nvidia.com/gpu", 8), "8"], [amount("cpu", undefined), "–"],
  [percent(0.834), "83 %"], [percent(NaN), "–"], [signed(20), "+20"], [signed(-3), "−3"], [signed(0), "±0"],
  [plain(duration(0.25)), "250 ms"], [plain(duration(42)), "42 s"], [plain(duration(240)), "4 min"], [plain(duration(7200)), "2 h"], [plain(duration(500000)), "6 d"],
]));

test("times are relative to the given clock", () => {
  const now = new Date("2026-11-18T08:21:03Z");
  same([[plain(ago("2026-11-18T08:17:03Z", now)), "4 min ago"], [plain(ago("2026-11-18T08:21:15Z", now)), "in 12 s"], [ago("", now), ""], [ago("nonsense", now), ""],
    [clock("2026-11-18T08:20:00Z", now), "08:20:00"], [clock("2026-11-17T08:20:00Z", now), "2026-11-17 08:20:00"], [clock(1795000000, new Date(1795000000000)).length, 8]]);
});

test("lists name a few and count the rest", () => same([
  [listed(["a"]), "a"], [listed(["a", "b", "c"]), "a, b and c"], [listed(["a", "b", "c"], 2), "a, b and 1 more"], [listed(["a"], 3, 9), "a and 8 more"],
]));

test("characters that change what a reader sees are shown", () => same([[visible("a\u202eb"), "a\\u202eb"], [visible("<b>"), "<b>"], [visible("x\u0000"), "x\\u0000"]]));

test("quantities are those of Kubernetes", () => same([
  [quantity("500m").number, 0.5], [quantity("16Gi").number, 16 * 1024 ** 3], [quantity("80%").number, 0.8], [quantity("2").suffix, ""], [quantity("x"), null], [quantity("2Zi"), null],
]));

test("an address reproduces a view", () => {
  const fragment = address(["pods", "shop", "web 0/é"], { filter: "zone=a and cpu.free>2", empty: "" });
  assert.equal(fragment, "#/pods/shop/web%200%2F%C3%A9?filter=zone%3Da%20and%20cpu.free%3E2");
  assert.deepEqual(parsed(fragment), { parts: ["pods", "shop", "web 0/é"], params: { filter: "zone=a and cpu.free>2" } });
  assert.deepEqual(parsed(""), { parts: ["map"], params: {} });
  assert.deepEqual(parsed("#/pods/%zz").parts, ["pods", "%zz"]);
  assert.deepEqual(podParts("shop/web-0"), ["shop", "web-0"]);
  assert.deepEqual(podParts("web-0"), ["default", "web-0"]);
});

test("the token is taken from the link and nowhere else", () => {
  assert.deepEqual(tokenIn("#token=abc%3D"), { token: "abc=", to: "#/map" });
  assert.deepEqual(tokenIn("#token=abc&to=%2Fqueue"), { token: "abc", to: "#/queue" });
  assert.equal(tokenIn("#/map?token=abc"), null);
});

test("state in an address survives, and damage is noticed", () => {
  const state = { first: "ä: 1\n", count: 3 };
  assert.deepEqual(unpacked(packed(state)), state);
  assert.match(packed(state), /^[\w-]+$/);
  assert.equal(unpacked("%%%"), null);
  assert.equal(unpacked(""), null);
});

test("events are parsed however the text is cut", () => {
  const text = ": hello\nevent: nodes\ndata: {\"a\":\ndata: 1}\n\nevent: ping\r\ndata: {}\r\n\r\n";
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new EventParser();
    const events = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))];
    assert.deepEqual(events, [{ type: "nodes", data: '{"a":\n1}' }, { type: "ping", data: "{}" }]);
  }
});

test("YAML is quoted where it would be read as something else", () => {
  const document = { spec: { tolerations: [{ key: "gpu", operator: "Equal", value: "true", effect: "NoSchedule" }], nodeSelector: { "kubernetes.io/hostname": "gpu-2" }, list: [], cpu: "2500m", port: "80", date: "2026-01-01", replicas: 3, odd: "a: b #c", empty: "" } };
  assert.equal(written(document), [
    "spec:", "  tolerations:", "  - key: gpu", "    operator: Equal", '    value: "true"', "    effect: NoSchedule", "  nodeSelector:",
    "    kubernetes.io/hostname: gpu-2", "  list: []", "  cpu: 2500m", '  port: "80"', '  date: "2026-01-01"', "  replicas: 3", '  odd: "a: b #c"', '  empty: ""', ""].join("\n"));
});

test("a what-if is reproduced by its address", () => {
  const params = { pod: "shop/web-0", cordon: "node-1,node-2", add: "node-3*5", weights: "default-scheduler/NodeResourcesFit=7", pods: "kind: Pod\n" };
  const state = stateOf(params);
  assert.deepEqual(Object.fromEntries(Object.entries(paramsOf(state)).filter(([, value]) => value)), params);
  assert.deepEqual(requestOf(state).addNodes, [{ like: "node-3", count: 5 }]);
  assert.equal(requestOf(state).weights["default-scheduler"].NodeResourcesFit, 7);
  assert.match(stateOf({}).pods, /kind: Pod/);
});

test("names in an address cannot reach the prototype of objects", () => {
  weightsOf("__proto__/polluted=1");
  assert.equal({}.polluted, undefined);
});

test("pods of manifests are counted by name", () => {
  const manifests = "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    a: b\n  name: web\nspec: {}\n---\nkind: Pod\nmetadata: {namespace: x, name: db}\n---\nkind: Deployment\nmetadata:\n  name: api\n";
  assert.deepEqual({ ...countsOf(manifests, 3) }, { web: 3, db: 3 });
});

const nodes = { names: ["a", "b", "c"], zones: ["x", "y", ""], labels: [{}, {}, {}], taints: [[], [], ["gpu:NoSchedule"]], fragmentation: [0, 0, 0], allocatable: { cpu: [4, 4, 8] }, requested: { cpu: [4, 0, 4] } };

test("nodes that are alike are one kind", () => {
  assert.deepEqual(kindsOf(nodes).map(({ like, count: number }) => [like, number]), [["a", 2], ["c", 1]]);
});

test("a legend counts names, and absent ones stand last", () => {
  assert.deepEqual(colouring("zone", nodes, "light").entries.map(({ label, count: number }) => [label, number]), [["x", 1], ["y", 1], ["no zone", 1]]);
  assert.deepEqual(colouring("taints", nodes, "dark").entries.map(({ label }) => label), ["gpu", "no taint"]);
  const use = colouring("use:cpu", nodes, "light");
  assert.deepEqual([use.of(0), use.of(1), use.of(2)], [20, 0, 10]);
  assert.deepEqual(use.entries.map(({ label }) => label), ["0 %", "25 %", "50 %", "70 %", "80 %", "90 %", "100 %"]);
  const devices = { ...nodes, allocatable: { ...nodes.allocatable, gpu: [2, 0, 0] }, requested: { ...nodes.requested, gpu: [1, 0, 0] } };
  const gpu = colouring("use:gpu", devices, "light");
  assert.equal(gpu.entries.at(-1).label, "none");
  assert.equal(gpu.colours[gpu.of(1)], gpu.entries.at(-1).colour);
  assert.notEqual(gpu.of(0), gpu.of(1));
  assert.equal(colouring("label:constructor", nodes, "light").entries[0].label, "without the label");
});
