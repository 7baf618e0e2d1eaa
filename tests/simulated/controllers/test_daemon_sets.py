"""On which nodes a DaemonSet creates pods, how it updates them, and its status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr
from tests.simulated.builders import NOW, TEMPLATE, a_pod

from mooring.simulated.controllers.daemon_sets import (
    GENERATION,
    GENERATION_LABEL,
    HASH_LABEL,
    DaemonPlan,
    Eligibility,
    daemon_pod,
    daemon_set_status,
    plan_daemons,
    plan_update,
    target_node,
)
from mooring.simulated.controllers.workload_records import DaemonSet
from mooring.simulated.records import NodeRecord, PodRecord

HOSTNAME = "requiredDuringSchedulingIgnoredDuringExecution"


def a_daemon_set(*, pod: dict[str, Any] | None = None, update: str = "RollingUpdate", **rolling: Any) -> DaemonSet:
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {**TEMPLATE, "spec": TEMPLATE["spec"] | (pod or {})},
        "updateStrategy": {"type": update, "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0} | rolling},
    }
    metadata = {"name": "ds", "namespace": "default", "uid": "uid-ds", "generation": 3}
    return msgspec.convert({"metadata": metadata, "spec": spec}, DaemonSet)


def a_node(name: str, *taints: str, **labels: str) -> NodeRecord:
    """Taints as `key:effect`."""
    listed = [{"key": taint.partition(":")[0], "effect": taint.partition(":")[2]} for taint in taints]
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": {"taints": listed}}, NodeRecord)


def on(node: str, hashed: str = "new", **more: Any) -> PodRecord:
    """A pod that runs on the node."""
    more.setdefault("ready", True)
    more.setdefault("phase", "Running")
    name = more.pop("name", f"ds-{node}-{hashed}")
    return a_pod(name, node=node, labels={"app": "web", HASH_LABEL: hashed}, **more)


def meant_for(node: str) -> PodRecord:
    """A pod that the scheduler has not placed yet."""
    document = daemon_pod(a_daemon_set(), node, "new")
    document["metadata"] |= {"name": f"ds-{node}", "uid": f"uid-{node}"}
    return msgspec.convert(document | {"status": {"phase": "Pending"}}, PodRecord)


ANYWHERE = a_daemon_set()
TOLERANT = a_daemon_set(pod={"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]})
SELECTIVE = a_daemon_set(pod={"nodeSelector": {"disk": "ssd"}})
TERM = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}
AFFINE = a_daemon_set(pod={"affinity": {"nodeAffinity": {HOSTNAME: {"nodeSelectorTerms": [TERM]}}}})
ELIGIBLE = {
    "a plain node": (ANYWHERE, a_node("a"), (True, True)),
    "a taint that is not tolerated keeps new pods off": (ANYWHERE, a_node("a", "gpu:NoSchedule"), (False, True)),
    "and old ones, if they may not stay": (ANYWHERE, a_node("a", "gpu:NoExecute"), (False, False)),
    "a taint that is tolerated": (TOLERANT, a_node("a", "gpu:NoSchedule"), (True, True)),
    "a taint that only prefers": (ANYWHERE, a_node("a", "gpu:PreferNoSchedule"), (True, True)),
    "a cordoned node": (ANYWHERE, a_node("a", "node.kubernetes.io/unschedulable:NoSchedule"), (True, True)),
    "a node that is not ready": (ANYWHERE, a_node("a", "node.kubernetes.io/not-ready:NoExecute"), (True, True)),
    "a node without a network": (
        ANYWHERE,
        a_node("a", "node.kubernetes.io/network-unavailable:NoSchedule"),
        (False, True),
    ),
    "which those who use the host's do not need": (
        a_daemon_set(pod={"hostNetwork": True}),
        a_node("a", "node.kubernetes.io/network-unavailable:NoSchedule"),
        (True, True),
    ),
    "a node that is selected": (SELECTIVE, a_node("a", disk="ssd"), (True, True)),
    "a node that is not": (SELECTIVE, a_node("a", disk="hdd"), (False, False)),
    "a node that the affinity admits": (AFFINE, a_node("a"), (True, True)),
    "a node that it does not": (AFFINE, a_node("a", disk="hdd"), (False, False)),
    "the node that the template names": (a_daemon_set(pod={"nodeName": "a"}), a_node("a"), (True, True)),
    "another": (a_daemon_set(pod={"nodeName": "a"}), a_node("b"), (False, False)),
}


@pytest.mark.parametrize(("owner", "node", "expected"), ELIGIBLE.values(), ids=ELIGIBLE.keys())
def test_which_nodes_are_eligible(owner, node, expected):
    assert Eligibility(owner).of(node) == expected


class TestAPod:
    def test_is_meant_for_its_node_and_no_other(self):
        own = {"podAntiAffinity": {"x": 1}, "nodeAffinity": {HOSTNAME: {"nodeSelectorTerms": [TERM]}, "preferred": []}}
        affinity = daemon_pod(a_daemon_set(pod={"affinity": own}), "a", "new")["spec"]["affinity"]

        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
        assert affinity["nodeAffinity"] == {HOSTNAME: {"nodeSelectorTerms": [term]}, "preferred": []}
        assert affinity["podAntiAffinity"] == {"x": 1}
        assert target_node(meant_for("a")) == "a"

    def test_tolerates_what_daemons_tolerate_without_end(self):
        key = "node.kubernetes.io/not-ready"
        shorter = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        pod = daemon_pod(a_daemon_set(pod={"tolerations": [shorter]}), "a", "new")
        assert len(pod["spec"]["tolerations"]) == 6
        assert {"key": key, "operator": "Exists", "effect": "NoExecute"} in pod["spec"]["tolerations"]
        assert shorter not in pod["spec"]["tolerations"]

    def test_carries_the_hash_of_its_template(self):
        owner = a_daemon_set()
        force_setattr(owner.metadata, "annotations", {GENERATION: "4"})
        labels = daemon_pod(owner, "a", "new")["metadata"]["labels"]
        assert labels == {"app": "web", HASH_LABEL: "new", GENERATION_LABEL: "4"}

    def test_leaves_the_template_as_it_is(self):
        owner = a_daemon_set(pod={"tolerations": []})
        daemon_pod(owner, "a", "new")
        assert owner.spec.template["spec"]["tolerations"] == []


A, B = a_node("a"), a_node("b")
SURGE: dict[str, Any] = {"maxSurge": 1, "maxUnavailable": 0}
PLANS: dict[str, tuple[DaemonSet, list[NodeRecord], list[PodRecord], tuple[list[str], list[str]]]] = {
    "a pod for every node that has none": (ANYWHERE, [A, B], [on("a")], (["b"], [])),
    "one that waits for the scheduler is one": (ANYWHERE, [A, B], [on("a"), meant_for("b")], ([], [])),
    "one that is going keeps the next away": (ANYWHERE, [A], [on("a", terminating=True)], ([], [])),
    "unless updates surge": (a_daemon_set(**SURGE), [A], [on("a", terminating=True)], (["a"], [])),
    "of two the younger goes": (
        ANYWHERE,
        [A],
        [on("a", name="young", created_at=NOW + 1), on("a", name="old")],
        ([], ["young"]),
    ),
    "a pod goes from a node that is not eligible": (SELECTIVE, [A], [on("a")], ([], ["ds-a-new"])),
    "but not for a taint that lets it stay": (ANYWHERE, [a_node("a", "x:NoSchedule")], [on("a")], ([], [])),
    "a pod that failed goes": (ANYWHERE, [A], [on("a", phase="Failed")], ([], ["ds-a-new"])),
    "a pod for a node that is gone goes": (ANYWHERE, [A], [on("a"), meant_for("b")], ([], ["ds-b"])),
    "an old pod stays beside a new one that is not ready": (
        a_daemon_set(**SURGE),
        [A],
        [on("a", "old"), on("a", ready=False)],
        ([], []),
    ),
    "and goes when that is": (a_daemon_set(**SURGE), [A], [on("a", "old"), on("a")], ([], ["ds-a-old"])),
    "or when it is not ready itself": (
        a_daemon_set(**SURGE),
        [A],
        [on("a", "old", ready=False), on("a", ready=False)],
        ([], ["ds-a-old"]),
    ),
}


def names(plan: DaemonPlan) -> tuple[list[str], list[str]]:
    return list(plan.create), [pod.name for pod in plan.delete]


@pytest.mark.parametrize(("owner", "nodes", "pods", "expected"), PLANS.values(), ids=PLANS.keys())
def test_a_pod_on_every_eligible_node(owner, nodes, pods, expected):
    assert names(plan_daemons(owner, nodes, pods, "new", NOW)) == expected


NODES = [a_node(name) for name in "abcd"]
OLD = [on(name, "old") for name in "abcd"]
UPDATES: dict[str, tuple[DaemonSet, list[PodRecord], tuple[list[str], list[str]]]] = {
    "one at a time": (ANYWHERE, OLD, ([], ["ds-a-old"])),
    "as many as may be unavailable": (a_daemon_set(maxUnavailable="50%"), OLD, ([], ["ds-a-old", "ds-b-old"])),
    "not before the last is available": (ANYWHERE, [on("a", ready=False), *OLD[1:]], ([], [])),
    "nor while a node has none": (ANYWHERE, OLD[1:], ([], [])),
    "an old one that is not available at once": (
        ANYWHERE,
        [*OLD[:3], on("d", "old", ready=False)],
        ([], ["ds-d-old"]),
    ),
    "nothing on delete": (a_daemon_set(update="OnDelete"), OLD, ([], [])),
    "a new one beside the old": (a_daemon_set(**SURGE), OLD, (["a"], [])),
    "the old goes when the new is available": (a_daemon_set(**SURGE), [on("a"), *OLD], (["b"], ["ds-a-old"])),
    "no further before": (a_daemon_set(**SURGE), [on("a", ready=False), *OLD], ([], [])),
}


@pytest.mark.parametrize(("owner", "pods", "expected"), UPDATES.values(), ids=UPDATES.keys())
def test_the_next_step_of_an_update(owner, pods, expected):
    assert names(plan_update(owner, NODES, pods, "new", NOW)) == expected


def test_a_pod_of_the_same_template_generation_is_not_replaced():
    owner = a_daemon_set()
    force_setattr(owner.metadata, "annotations", {GENERATION: "7"})
    pods = [a_pod(f"ds-{name}", node=name, ready=True, labels={GENERATION_LABEL: "7"}) for name in "abcd"]
    assert not plan_update(owner, NODES, pods, "new", NOW)


def test_with_surge_a_misplaced_pod_stays_until_the_others_are_available():
    owner = a_daemon_set(pod={"nodeSelector": {"disk": "ssd"}}, **SURGE)
    nodes = [a_node("a", "x:NoSchedule", disk="ssd"), a_node("b", disk="ssd")]
    assert names(plan_update(owner, nodes, [on("a", "old"), on("b", ready=False)], "new", NOW)) == ([], [])
    assert names(plan_update(owner, nodes, [on("a", "old"), on("b")], "new", NOW)) == ([], ["ds-a-old"])


@given(
    st.lists(st.sampled_from(["none", "old", "new", "going", "failed", "waiting"]), min_size=1, max_size=8),
    st.sampled_from(
        [{"maxUnavailable": 1}, {"maxUnavailable": "50%"}, SURGE, {"maxSurge": "50%", "maxUnavailable": 0}]
    ),
    st.integers(0, 7),
)
def test_from_any_start_every_eligible_node_gets_one_new_pod(states, rolling, tainted):
    nodes = [a_node(f"n{at}", *(["x:NoExecute"] if at == tainted else [])) for at in range(len(states))]
    owner = a_daemon_set(**rolling)
    created: dict[str, Callable[[str], list[PodRecord]]] = {
        "none": lambda _: [],
        "old": lambda name: [on(name, "old")],
        "new": lambda name: [on(name)],
        "going": lambda name: [on(name, "old", terminating=True)],
        "failed": lambda name: [on(name, "old", phase="Failed")],
        "waiting": lambda name: [on(name, ready=False)],
    }
    pods = [pod for node, state in zip(nodes, states, strict=True) for pod in created[state](node.name)]
    for _ in range(100):
        plan = plan_daemons(owner, nodes, pods, "new", NOW) or plan_update(owner, nodes, pods, "new", NOW)
        settled = not plan and all(pod.ready_since and not pod.is_terminating for pod in pods)
        if settled:
            break
        # What was going is gone, what waited is ready, what is removed goes next.
        stay = [pod for pod in pods if not pod.is_terminating and pod not in plan.delete]
        pods = [on(pod.spec.node_name, pod.labels[HASH_LABEL], name=pod.name, phase=pod.status.phase) for pod in stay]
        pods += [on(pod.spec.node_name, "old", name=pod.name, terminating=True) for pod in plan.delete]
        pods += [on(name, ready=False, name=f"{name}-made") for name in plan.create]
    eligible = [node.name for node in nodes if not node.spec.taints]
    assert sorted((pod.spec.node_name, pod.labels[HASH_LABEL]) for pod in pods) == [(name, "new") for name in eligible]


def test_the_status_counts_nodes():
    owner = a_daemon_set(pod={"nodeSelector": {"disk": "ssd"}})
    nodes = [a_node(name, disk="ssd") for name in "abcd"] + [a_node("x")]
    pods = [on("a"), on("b", "old"), on("c", ready=False), on("x")]

    assert daemon_set_status(owner, nodes, pods, "new", 0, NOW) == {
        "observedGeneration": 3,
        "desiredNumberScheduled": 4,
        "currentNumberScheduled": 3,
        "numberMisscheduled": 1,
        "numberReady": 2,
        "numberAvailable": 2,
        "numberUnavailable": 2,
        "updatedNumberScheduled": 2,
        "collisionCount": 0,
    }
