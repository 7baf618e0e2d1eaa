/** What a what-if asks: from an address, to an address, and as a request. Pure. */

const LISTS = ["cordon", "uncordon", "drain"];

export const EXAMPLE = `apiVersion: v1
kind: Pod
metadata:
  name: what-if
spec:
  containers:
  - name: main
    image: example
    resources:
      requests:
        cpu: "1"
        memory: 1Gi
`;

/** Of the params of an address. Without any, a pod to begin with. */
export function stateOf(params) {
  const isBlank = !["pods", "pod", "cordon", "uncordon", "drain", "add", "weights"].some((key) => params[key]);
  return {
    pods: params.pods ?? (isBlank ? EXAMPLE : ""),
    pod: params.pod ?? "",
    count: Math.max(1, Number.parseInt(params.count ?? "1", 10) || 1),
    cordon: names(params.cordon), uncordon: names(params.uncordon), drain: names(params.drain),
    add: names(params.add).map(addition).filter(Boolean),
    template: params.template ?? "",
    weights: weightsOf(params.weights),
  };
}

function names(text) {
  return (text ?? "").split(",").map((each) => each.trim()).filter(Boolean);
}

/** "node-1*3" → {like: "node-1", count: 3}. */
function addition(text) {
  const at = text.lastIndexOf("*");
  const count = Number.parseInt(text.slice(at + 1), 10);
  return at > 0 && count > 0 ? { like: text.slice(0, at), count } : null;
}

/** "default-scheduler/NodeResourcesFit=3" → {"default-scheduler": {NodeResourcesFit: 3}}. */
export function weightsOf(text) {
  const found = Object.create(null); // names come from addresses
  for (const entry of names(text)) {
    const [, profile, plugin, weight] = /^(.*)\/([^/=]+)=(\d+)$/.exec(entry) ?? [];
    if (plugin) (found[profile] ??= Object.create(null))[plugin] = Number(weight);
  }
  return found;
}

function weightsText(weights) {
  return Object.entries(weights).flatMap(([profile, plugins]) => Object.entries(plugins).map(([plugin, weight]) => `${profile}/${plugin}=${weight}`)).join(",");
}

/** The params of an address that reproduces the state. */
export function paramsOf(state) {
  return {
    pod: state.pod, count: state.count > 1 ? String(state.count) : "",
    ...Object.fromEntries(LISTS.map((key) => [key, state[key].join(",")])),
    add: state.add.map(({ like, count }) => `${like}*${count}`).join(","),
    weights: weightsText(state.weights), template: state.template,
    pods: state.pods === EXAMPLE ? "" : state.pods,
  };
}

/** The body of POST /what-if. */
export function requestOf(state) {
  const body = { pods: state.pods, cordon: state.cordon, uncordon: state.uncordon, drain: state.drain, weights: state.weights };
  body.addNodes = state.add.map(({ like, count }) => (like === "template" ? { template: state.template, count } : { like, count }));
  if (state.pod) body.pod = state.pod;
  if (state.count > 1) body.counts = countsOf(state.pods, state.count);
  return body;
}

/** `count` of every pod of the manifests: {name: count}. Workloads have their own number of replicas. */
export function countsOf(manifests, count) {
  const found = Object.create(null);
  for (const document of manifests.split(/^---.*$/m)) {
    if (!/^kind:\s*["']?Pod["']?\s*$/m.test(document)) continue;
    const name = /^metadata:\s*(?:\{.*?\bname:\s*|\n(?:\s+.*\n)*?\s+name:\s*)["']?([\w.-]+)/m.exec(document);
    if (name) found[name[1]] = count;
  }
  return found;
}

/** Nodes of a kind: alike in what they have, in taints and in instance type. Returns [{name, like, count}]. */
export function kindsOf(nodes) {
  const kinds = new Map();
  for (const [row, name] of nodes.names.entries()) {
    const amounts = Object.entries(nodes.allocatable).map(([resource, column]) => [resource, column[row]]).filter(([, number]) => number);
    const type = nodes.labels[row]?.["node.kubernetes.io/instance-type"] ?? "";
    const key = JSON.stringify([type, amounts, nodes.taints[row]]);
    const kind = kinds.get(key);
    if (kind) kind.count += 1;
    else kinds.set(key, { like: name, type, amounts: Object.fromEntries(amounts), taints: nodes.taints[row] ?? [], count: 1 });
  }
  return [...kinds.values()].sort((a, b) => b.count - a.count);
}
