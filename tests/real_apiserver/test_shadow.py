"""`mooring run --shadow` beside the real kube-scheduler, with rights to read and no others.

The pods are many kinds; some must wait, some make others go; the first come one by one, the others in a crowd. A
shadow with kube-scheduler's own configuration agrees; one with other rules differs, and names the plugin.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Any

from tests.cli.programs import Program
from tests.real_apiserver import mixed_pods
from tests.real_apiserver.cluster import PODS, PRIORITIES, Cluster, Document
from tests.real_apiserver.control_plane import ADMIN, SCHEDULER
from tests.real_apiserver.deployments import Deployment, manifests
from tests.real_apiserver.side_by_side import Recording
from tests.real_apiserver.test_rights import Audit, granted

COUNT, ONE_BY_ONE, SEED = 90, 50, 1
READING = {"get", "list", "watch"}

NO_THIRDS = """
from mooring.framework import Plugin, Rejection


class NoThirds(Plugin):
    def filter(self, pod, node, cycle):
        return Rejection("node(s) third") if node.name == "node-3" else None
"""
PACKING = {
    "name": "NodeResourcesFit",
    "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
}


def test_a_shadow_agrees_where_the_rules_are_the_same_and_else_names_the_plugin(cluster: Cluster):
    theirs = config(cluster, "theirs", percentageOfNodesToScore=100, clientConnection=scheduler_client(cluster))
    plain = config(cluster, "same", percentageOfNodesToScore=100)
    packing = config(cluster, "packing", profiles=[{"pluginConfig": [PACKING]}])
    walled = config(cluster, "walled", profiles=[{"plugins": {"multiPoint": {"enabled": [{"name": "NoThirds"}]}}}])
    (cluster.home / "no_thirds.py").write_text(NO_THIRDS, encoding="utf-8")
    for document in mixed_pods.priority_classes(COUNT, SEED):
        cluster.api.create(PRIORITIES, document)
    pods = mixed_pods.pods(COUNT, SEED)
    cluster.nodes_of(mixed_pods.nodes())
    text = manifests("--as=shadow", f"--config={plain}", "--namespace=shadows", home=cluster.home)
    with Deployment(cluster, text, cluster.home) as deployment, contextlib.ExitStack() as running:
        reader = kubeconfig_of(cluster, deployment.token())
        same = Watcher(running, cluster, reader, plain)
        others = [
            Watcher(running, cluster, reader, packing),
            Watcher(running, cluster, reader, walled, "--plugins=no_thirds.py"),
        ]
        scheduler = cluster.kube_scheduler(f"--config={theirs}")
        make_room(cluster)
        one_by_one = Recording(cluster, pods[:ONE_BY_ONE]).run(scheduler)
        for document in pods[ONE_BY_ONE:]:
            # None is a victim of preemption: the choice depends on timing that cannot be observed from outside.
            del document["spec"]["priorityClassName"]
            cluster.api.create(PODS, document)
        cluster.until(lambda: all_decided(cluster), what="a node or a refusal for every pod")
        bound = {pod["metadata"]["uid"] for pod in cluster.pods() if pod["spec"].get("nodeName")}
        for watcher in (same, *others):
            watcher.end(cluster, bound)

    names = {"low", "urgent"} | {seen.pod for seen in one_by_one}
    disagreements = [each for each in same.entries(names) if each["result"] != "agree"]
    assert not disagreements, "\n".join(map(str, disagreements))
    assert {each["subject"] for each in same.entries(names)} == {"binding", "refusal", "preemption"}
    # With many pods, a message may describe a state that the other scheduler never saw; decisions must be explained.
    differences = [each for each in same.entries() if each["result"] == "differ"]
    assert not differences, "\n".join(map(str, differences))
    assert "0 differ" in same.program.mentions("Compared ")

    gaps = Counter(each["plugin"] for each in others[0].entries() if each.get("cause") == "score")
    assert gaps.most_common(1)[0][0] == "NodeResourcesFit"
    walls = [each for each in others[1].entries() if each.get("plugin") == "NoThirds"]
    assert {each["result"] for each in walls} == {"differ"}
    assert {each["evidence"]["rejection"]["reasons"][0] for each in walls} == {"node(s) third"}

    audit = Audit(cluster, deployment.user)
    assert audit.refused() == []
    assert {verb for _, _, verb in audit.used()} <= READING
    assert {verb for _, _, verb in granted(deployment.documents)} <= READING


def make_room(cluster: Cluster) -> None:
    """A pod takes another's place, and goes."""
    cluster.priority("urgent", 1_000_000)
    there = {mixed_pods.HOST: "node-2"}
    cluster.pod("low", cpu="3", nodeSelector=there)
    cluster.running("low")
    cluster.pod("urgent", cpu="3", nodeSelector=there, priorityClassName="urgent")
    cluster.running("urgent")
    cluster.api.delete(f"{PODS}/urgent")
    cluster.gone("urgent")


class Watcher:
    """A shadow and its report."""

    def __init__(
        self, running: contextlib.ExitStack, cluster: Cluster, kubeconfig: Path, configuration: Path, *flags: str
    ) -> None:
        self.name = configuration.stem
        self._report = configuration.with_suffix(".jsonl")
        where = (f"--kubeconfig={kubeconfig}", f"--config={configuration}", f"--shadow-report={self._report}")
        self.program = running.enter_context(Program("run", "--shadow", *where, *flags, home=cluster.home))
        self.program.ready()

    def lines(self) -> list[dict[str, Any]]:
        text = self._report.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def compared(self) -> set[str]:
        """The uids of the pods whose binding was compared."""
        return {each["uid"] for each in self.lines() if each["subject"] == "binding"}

    def entries(self, names: Container[str] | None = None) -> list[dict[str, Any]]:
        """Of all pods, or of these."""
        return [each for each in self.lines() if names is None or each["pod"].partition("/")[2] in names]

    def end(self, cluster: Cluster, bound: set[str]) -> None:
        """Once it has compared the bindings of these pods."""
        cluster.until(lambda: bound <= self.compared(), what=f"comparisons by {self.name}")
        assert self.program.end() == 0, self.program.written()


def config(cluster: Cluster, name: str, **fields: Any) -> Path:
    """A configuration in the test's folder; it has no leaderElection, so that the default holds."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path = cluster.home / f"{name}.yaml"
    path.write_text(json.dumps(head | fields), encoding="utf-8")
    return path


def scheduler_client(cluster: Cluster) -> Document:
    return {"kubeconfig": str(cluster.control_plane.kubeconfig(SCHEDULER))}


def kubeconfig_of(cluster: Cluster, token: str) -> Path:
    document: Document = json.loads(cluster.control_plane.kubeconfig(ADMIN).read_text(encoding="utf-8"))
    document["users"][0]["user"] = {"token": token}
    path = cluster.home / "reader.kubeconfig"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def all_decided(cluster: Cluster) -> bool:
    """Each pod has a node, or was refused and no room is being made for it."""

    def is_decided(pod: Document) -> bool:
        status = pod["status"]
        refused = any(
            each["type"] == "PodScheduled" and each["status"] == "False" for each in status.get("conditions", ())
        )
        return bool(pod["spec"].get("nodeName")) or (refused and not status.get("nominatedNodeName"))

    return all(is_decided(pod) for pod in cluster.pods())
