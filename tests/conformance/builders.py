"""Small cases, and what a recorder would decide about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from mooring.engine import Form
from mooring_conformance.cases import Case, Recorded
from mooring_conformance.our_decision import our_decision
from mooring_conformance.situation import Situation

Json = dict[str, Any]


def a_node(name: str, *, cpu: str = "4", taints: list[Json] | None = None, labels: Json | None = None) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or []},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def a_pod(name: str = "incoming", *, cpu: str = "100m", priority: int = 0, **more: Any) -> Json:
    """A pod; `node` places it, `nominated` nominates it, `phase` is its status'."""
    status = {"phase": more.pop("phase", "Pending")}
    if nominated := more.pop("nominated", None):
        status["nominatedNodeName"] = nominated
    spec = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}],
    }
    if node := more.pop("node", None):
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, **more}, "status": status}


def a_case(*objects: Json, pod: Json | None = None, config: Any = None, name: str = "case") -> Json:
    return {"name": name, "config": config, "objects": list(objects), "pod": pod or a_pod()}


def a_configuration(**profile: Any) -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", **profile}],
    }


def situation(case: Json) -> Situation:
    return Situation(msgspec.json.decode(json.dumps(case), type=Case))


def agreeing_decision(case: Json) -> Json:
    """The decision of a recorder that agrees with us in everything."""
    ours = our_decision(situation(case), Form.FASTER)
    expect: Json = {"name": case["name"], "result": ours.result, "feasible": []}
    if ours.result == "noNodes":
        return {**expect, "message": ours.message}
    if ours.result == "gated":
        return {**expect, "preEnqueue": ours.pre_enqueue}
    expect["preFilter"] = {"code": "Success", "nodeNames": None, "skipped": sorted(ours.skipped)}
    if ours.pre_filter is not None:
        expect["preFilter"].update(ours.pre_filter)
    else:
        expect["nodes"] = ours.nodes
        expect["feasible"] = sorted(node for node, verdict in ours.nodes.items() if verdict is None)
    if ours.nominated:
        expect["nominatedNodePasses"] = ours.chosen == ours.nominated
    if ours.result == "feasible":
        expect["scoreSkipped"] = sorted(ours.score_skipped)
        expect["best"] = [ours.chosen]
        if ours.scores is not None:
            highest = max(numbers["total"] for numbers in ours.scores.values())
            expect["best"] = [node for node, numbers in ours.scores.items() if numbers["total"] == highest]
            expect["scores"] = ours.scores
    else:
        expect["message"] = ours.message
        expect["postFilter"] = _post_filter(ours.post_filter)
    return expect


def _post_filter(ours: Json | None) -> Json | None:
    if ours is None or ours["code"] != "Success":
        return ours
    return {**ours, "nominatedNodes": [ours["nominatedNode"]]}


def recorded(case: Json, expect: Json | None = None) -> Recorded:
    return msgspec.json.decode(json.dumps({"case": case, "expect": expect or agreeing_decision(case)}), type=Recorded)


def a_file(folder: Path, *cases: Recorded, name: str = "some.jsonl") -> Path:
    file = folder / name
    file.write_bytes(b"".join(msgspec.json.encode(case) + b"\n" for case in cases))
    return file
