"""`mooring explain` and `mooring why-not` about pods of the Go kube-scheduler: a recomputation, and the same result."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.cli.programs import Program
from tests.real_apiserver.cluster import PODS, Cluster, Document
from tests.real_apiserver.control_plane import ADMIN
from tests.simulator import without_ties

SEED = without_ties.SEEDS[0]


def test_pods_of_kube_scheduler_are_explained_and_what_would_help_helps(cluster: Cluster, tmp_path: Path):
    cluster.nodes_of(without_ties.nodes())
    cluster.kube_scheduler(cluster.configuration(percentageOfNodesToScore=100))
    huge, web = pod_document("huge", cpu="500"), pod_document("web", cpu="1")
    for document in (huge, web):
        cluster.api.create(PODS, document)
    condition = cluster.until(partial(refused, cluster, "huge"), what="kube-scheduler's refusal")
    cluster.bound("web")

    explained = called(cluster, tmp_path, "explain", "huge")
    assert explained["recomputed"]["decision"]["message"] == condition["message"]
    assert "decision" not in explained, "no scheduler of ours decided it"

    node = cluster.api.get(f"{PODS}/web")["spec"]["nodeName"]
    bound = called(cluster, tmp_path, "explain", "web")
    assert (bound["node"], bound["recomputed"]["decision"]["node"]) == (node, node)
    rows = bound["recomputed"]["table"]["nodes"]
    assert rows[0]["node"] == node
    assert bound["recomputed"]["runnerUp"]["margin"] == rows[0]["total"] - rows[1]["total"]

    smaller = next(
        change
        for miss in explained["recomputed"]["nearest"]
        for change in miss["changes"]
        if "containers" in change.get("manifest", {}).get("spec", {})
    )
    other = next(row["node"] for row in reversed(rows) if row["node"] not in (node, smaller["node"]))
    [required] = called(cluster, tmp_path, "why-not", "web", other)["changes"]

    [container] = smaller["manifest"]["spec"]["containers"]
    fits = pod_document("fits", cpu=container["resources"]["requests"]["cpu"])
    fits["spec"]["nodeSelector"] = {"kubernetes.io/hostname": smaller["node"]}
    moved = pod_document("moved", cpu="1")
    moved["spec"] |= required["manifest"]["spec"]
    for document in (fits, moved):
        cluster.api.create(PODS, document)
    assert (cluster.bound("fits"), cluster.bound("moved")) == (smaller["node"], other)


def pod_document(name: str, *, cpu: str) -> Document:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def decided(cluster: Cluster, name: str) -> Document | None:
    conditions = cluster.api.get(f"{PODS}/{name}").get("status", {}).get("conditions", ())
    return next((dict(each) for each in conditions if each["type"] == "PodScheduled"), None)


def refused(cluster: Cluster, name: str) -> Document | None:
    condition = decided(cluster, name)
    return condition if condition is not None and condition["status"] == "False" else None


def called(cluster: Cluster, home: Path, *arguments: str) -> dict[str, Any]:
    kubeconfig = cluster.control_plane.kubeconfig(ADMIN)
    with Program(*arguments, f"--kubeconfig={kubeconfig}", "-o", "json", home=home) as program:
        assert program.ended() == 0, program.written()
    found: dict[str, Any] = json.loads("\n".join(program.out))
    return found
