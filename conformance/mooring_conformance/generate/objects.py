"""Namespaces, nodes, containers and pods as an API server holds them: defaulted and valid; and cases made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring_conformance.generate.dice import GIB, MIB, Dice, Json, bytes_quantity, cpu_quantity, quantity, timestamp

CONFIG_API = "kubescheduler.config.k8s.io/v1"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


def an_object(
    api: str, kind: str, name: str, ns: str | None = None, labels: Json | None = None, annotations: Json | None = None
) -> Json:
    m: Json = {
        "name": name,
        "uid": f"{kind.lower()}-{ns + '-' if ns else ''}{name}",
        "resourceVersion": "1",
        "creationTimestamp": timestamp(0),
    }
    if ns:
        m["namespace"] = ns
    if labels:
        m["labels"] = dict(labels)
    if annotations:
        m["annotations"] = dict(annotations)
    return {"apiVersion": api, "kind": kind, "metadata": m}


def a_namespace(name: str, labels: Json | None = None) -> Json:
    o = an_object("v1", "Namespace", name, labels={"kubernetes.io/metadata.name": name, **(labels or {})})
    o["spec"] = {"finalizers": ["kubernetes"]}
    o["status"] = {"phase": "Active"}
    return o


def a_node(
    dice: Dice,
    name: str,
    cpu: int = 4000,
    mem: int = 8 * GIB,
    pods: int = 110,
    labels: Json | None = None,
    zone: str | None = None,
    region: str | None = None,
    taints: list[Json] | None = None,
    unschedulable: bool = False,
    images: list[Json] | None = None,
    extra: dict[str, int] | None = None,
    eph: int | None = None,
    hostname: bool = True,
    odd: float = 0.3,
) -> Json:
    lab: Json = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if hostname:
        lab[HOSTNAME] = name
    if zone:
        lab[ZONE] = zone
    if region:
        lab[REGION] = region
    lab.update(labels or {})
    o = an_object("v1", "Node", name, labels=lab)
    alloc: Json = {"cpu": cpu_quantity(dice, cpu, odd), "memory": bytes_quantity(dice, mem, odd), "pods": str(pods)}
    if eph is not None:
        alloc["ephemeral-storage"] = bytes_quantity(dice, eph, odd)
    for k, v in (extra or {}).items():
        alloc[k] = quantity(dice, k, v, odd)
    o["spec"] = {}
    if unschedulable:
        o["spec"]["unschedulable"] = True
    if taints:
        o["spec"]["taints"] = taints
    # The capacity differs from what can be allocated; only the latter counts.
    capacity = dict(alloc)
    capacity["cpu"] = cpu_quantity(dice, cpu + dice.choice([0, 80, 1000]), odd)
    capacity["memory"] = bytes_quantity(dice, mem + dice.choice([0, 100 * MIB, GIB]), odd)
    o["status"] = {
        "capacity": capacity,
        "allocatable": alloc,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        "nodeInfo": {
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kernelVersion": "6.1",
            "osImage": "linux",
            "containerRuntimeVersion": "containerd://2.0.0",
            "kubeletVersion": "v1.36.4",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }
    if images:
        o["status"]["images"] = images
    return o


def a_container(
    name: str,
    image: str = "registry.example.com/app:v1",
    requests: Any = None,
    limits: Json | None = None,
    ports: list[Json] | None = None,
    restart: str | None = None,
    claims: list[Json] | None = None,
) -> Json:
    res: Json = {}
    if limits:
        res["limits"] = dict(limits)
        requests = {**limits, **(requests or {})}  # as the API server defaults it
    if requests:
        res["requests"] = dict(requests)
    if claims:
        res["claims"] = claims
    c: Json = {
        "name": name,
        "image": image,
        "resources": res,
        "imagePullPolicy": pull_policy(image),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    if ports:
        c["ports"] = ports
    if restart:
        c["restartPolicy"] = restart
    return c


def pull_policy(image: str) -> str:
    last = image.rsplit("/", 1)[-1]
    if "@" in image:
        return "IfNotPresent"
    if ":" not in last or last.endswith(":latest"):
        return "Always"
    return "IfNotPresent"


def with_default_tolerations(tols: list[Json] | None) -> list[Json]:
    """What the DefaultTolerationSeconds admission plugin adds."""
    out = list(tols or [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(t.get("key", "") in ("", key) and t.get("effect", "NoExecute") in ("", "NoExecute") for t in out):
            out.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    return out


def merge_label_keys(pod: Json) -> None:
    """What the pod registry does to matchLabelKeys and mismatchLabelKeys."""
    labels = pod["metadata"].get("labels", {})

    def apply(sel: Json, keys: Sequence[str] | None, op: str) -> None:
        for k in keys or []:
            if k in labels:
                sel.setdefault("matchExpressions", []).append({"key": k, "operator": op, "values": [labels[k]]})

    for c in pod["spec"].get("topologySpreadConstraints", []):
        if c.get("matchLabelKeys") and c.get("labelSelector") is not None:
            apply(c["labelSelector"], c["matchLabelKeys"], "In")
    aff = pod["spec"].get("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        a = aff.get(kind, {})
        terms = [t["podAffinityTerm"] for t in a.get("preferredDuringSchedulingIgnoredDuringExecution", [])]
        terms += a.get("requiredDuringSchedulingIgnoredDuringExecution", [])
        for t in terms:
            if (t.get("matchLabelKeys") or t.get("mismatchLabelKeys")) and t.get("labelSelector") is not None:
                apply(t["labelSelector"], t.get("matchLabelKeys"), "In")
                apply(t["labelSelector"], t.get("mismatchLabelKeys"), "NotIn")


def a_pod(
    name: str,
    ns: str = "default",
    labels: Json | None = None,
    containers: list[Json] | None = None,
    node: str | None = None,
    priority: int = 0,
    start: int | None = None,
    tolerations: list[Json] | None = None,
    default_tols: bool = True,
    created: int = 0,
    **spec: Any,
) -> Json:
    o = an_object("v1", "Pod", name, ns, labels)
    o["metadata"]["creationTimestamp"] = timestamp(created)
    s: Json = {
        "containers": containers or [a_container("c")],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "priority": priority,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    tols = with_default_tolerations(tolerations) if default_tols else list(tolerations or [])
    if tols:
        s["tolerations"] = tols
    s.update({k: v for k, v in spec.items() if v is not None})
    o["spec"] = s
    if node:
        s["nodeName"] = node
        o["status"] = {
            "phase": "Running",
            "startTime": timestamp(start if start is not None else 3600),
            "qosClass": "Burstable",
        }
    else:
        o["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    merge_label_keys(o)
    return o


def nominated(pod: Json, node_name: str) -> Json:
    pod["status"]["nominatedNodeName"] = node_name
    return pod


def a_config(plugin_config: Sequence[tuple[str, Json]] | None = None, plugins: Json | None = None, **top: Any) -> Json:
    prof: Json = {"schedulerName": "default-scheduler"}
    if plugins:
        prof["plugins"] = plugins
    if plugin_config:
        prof["pluginConfig"] = [
            {"name": n, "args": {"apiVersion": CONFIG_API, "kind": n + "Args", **a}} for n, a in plugin_config
        ]
    return {"apiVersion": CONFIG_API, "kind": "KubeSchedulerConfiguration", "profiles": [prof], **top}


def a_case(
    name: str, objects: list[Json], pod: Json, config: Json | None = None, gates: dict[str, bool] | None = None
) -> Json:
    c: Json = {"name": name, "config": config, "objects": objects, "pod": pod}
    if gates:
        c["featureGates"] = gates
    return c


def _other_amounts(dice: Dice, requests: Json) -> Json:
    """Requests of the same resources, some of them changed."""
    return {
        k: dice.choice([v, v, "150m" if k == "cpu" else "96Mi", "1500m" if k == "cpu" else "1Gi"])
        for k, v in requests.items()
    }


def resized(dice: Dice, pod: Json) -> None:
    """Give a running pod the status of an in-place resize.

    What counts is the maximum of spec, allocated and actual requests, or without the spec if the resize is infeasible.
    """
    statuses: list[Any] = []
    for c in pod["spec"]["containers"]:
        req = {k: v for k, v in c["resources"].get("requests", {}).items() if k in ("cpu", "memory")}
        if not req:
            continue

        statuses.append(
            {
                "name": c["name"],
                "image": c["image"],
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "allocatedResources": _other_amounts(dice, req),
                "resources": {"requests": _other_amounts(dice, req)},
            }
        )
    if statuses:
        pod["status"]["containerStatuses"] = statuses
        if dice.chance(0.6):
            pod["status"]["conditions"] = [
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "reason": dice.choice(["Infeasible", "Deferred"]),
                    "lastTransitionTime": timestamp(8000),
                }
            ]


def end_some(dice: Dice, pods: list[Json], frac: float = 0.03) -> None:
    """Some pods have run to completion; the scheduler does not see them."""
    for pod in pods:
        if dice.chance(frac):
            pod["status"]["phase"] = dice.choice(["Succeeded", "Failed"])
            pod["spec"]["restartPolicy"] = "Never"
