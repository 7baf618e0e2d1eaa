"""For each plugin: which node is nearest, what it lacks, and what would help. Changes are tried in the test, too."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.why.clusters import owned, recomputing

from mooring.base.clock import timestamp
from mooring.framework import Pod
from mooring.objects import Node
from mooring.objects.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.testing import a_node_object, a_pod
from mooring.testing.builders import a_constraint, a_taint, a_term, a_toleration, pod_rules, requires
from mooring.why import recomputed

GPU = a_taint("gpu=true:NoSchedule")
TWO_ZONES = [a_node_object("a", labels={"zone": "a"}), a_node_object("b", labels={"zone": "b"})]


class Expected(NamedTuple):
    node: str
    missing: list[str]
    changes: list[str]


def named(*nodes: str) -> Affinity:
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=tuple(nodes))
    term = NodeSelectorTerm(match_fields=(requirement,))
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=(term,))))


CASES: dict[str, tuple[list[Node], list[Pod], Pod, Expected]] = {
    "the node that lacks least cpu, and the pod that would free it": (
        [a_node_object("small", cpu="4"), a_node_object("large", cpu="8")],
        [
            a_pod("web-1", cpu="4", node="small"),
            a_pod("web-3", cpu="500m", node="large"),
            a_pod("db", cpu="7", node="large"),
        ],
        a_pod(cpu="700m"),
        Expected(
            "large",
            ["lacks 200m cpu"],
            ["delete default/web-3", "shrink default/web-3 by 200m cpu", "request 500m cpu instead of 700m"],
        ),
    ),
    "several pods, where one is not enough": (
        [a_node_object("one", cpu="4")],
        [a_pod(f"web-{number}", cpu="1", node="one") for number in range(4)],
        a_pod(cpu="2"),
        Expected("one", ["lacks 2 cpu"], ["delete default/web-0 and default/web-1"]),
    ),
    "pods of lower priority go first": (
        [a_node_object("one", cpu="4")],
        [a_pod("important", cpu="2", node="one", priority=10), a_pod("other", cpu="2", node="one")],
        a_pod(cpu="1"),
        Expected("one", ["lacks 1 cpu"], ["delete default/other", "shrink default/other by 1 cpu"]),
    ),
    "a pod of a DaemonSet comes back, so it is not proposed": (
        [a_node_object("one", cpu="4")],
        [owned(a_pod("logs", cpu="3", node="one"), "DaemonSet", "logs")],
        a_pod(cpu="2"),
        Expected("one", ["lacks 1 cpu"], ["request 1 cpu instead of 2"]),
    ),
    "a node that is too small when it is empty": (
        [a_node_object("one", cpu="4", memory="8Gi")],
        [],
        a_pod(cpu="64", memory="1Gi"),
        Expected("one", ["has only 4 of the 64 cpu requested"], ["request 4 cpu instead of 64"]),
    ),
    "two resources at once": (
        [a_node_object("one", cpu="4", memory="8Gi")],
        [a_pod("web", cpu="3", memory="6Gi", node="one")],
        a_pod(cpu="2", memory="4Gi"),
        Expected(
            "one",
            ["lacks 1 cpu and lacks 2Gi memory"],
            [
                "delete default/web",
                "shrink default/web by 1 cpu and 2Gi memory",
                "request 1 cpu instead of 2 and 2Gi memory instead of 4Gi",
            ],
        ),
    ),
    "no device at all": (
        [a_node_object("one")],
        [],
        a_pod(requests={"example.com/gpu": "1"}),
        Expected("one", ["has no example.com/gpu, and no node has any"], []),
    ),
    "a device of another vendor": (
        [a_node_object("one", resources={"example.com/gpus": "8"})],
        [],
        a_pod(requests={"example.com/gpu": "1"}),
        Expected("one", ["has no example.com/gpu, and no node has any (similar: example.com/gpus)"], []),
    ),
    "a device cannot be resized, so the pod that has it is not shrunk": (
        [a_node_object("one", resources={"example.com/gpu": "8"})],
        [a_pod("train", requests={"example.com/gpu": "8"}, node="one")],
        a_pod(requests={"example.com/gpu": "1"}),
        Expected("one", ["lacks 1 example.com/gpu"], ["delete default/train"]),
    ),
    "a label that no node has, spelt otherwise": (
        [a_node_object("one", labels={"disk": "ssd-fast"})],
        [],
        a_pod(node_selector={"disk": "ssd-fats"}),
        Expected(
            "one",
            ["has disk=ssd-fast, not disk=ssd-fats, which no node has (similar: ssd-fast)"],
            [
                "select nodes by disk=ssd-fast in place of disk=ssd-fats",
                "label one with disk=ssd-fats",
                "create the pod without disk=ssd-fats",
            ],
        ),
    ),
    "a label whose key no node has": (
        [a_node_object("one", labels={"disktype": "ssd"})],
        [],
        a_pod(node_selector={"disktyp": "ssd"}),
        Expected(
            "one",
            ["lacks the label disktyp=ssd, and no node has a label disktyp (similar: disktype)"],
            ["label one with disktyp=ssd", "create the pod without disktyp=ssd"],
        ),
    ),
    "a zone is the kubelet's to set": (
        [a_node_object("one", labels={"topology.kubernetes.io/zone": "a"})],
        [],
        a_pod(node_selector={"topology.kubernetes.io/zone": "b"}),
        Expected(
            "one",
            ["has topology.kubernetes.io/zone=a, not topology.kubernetes.io/zone=b, which no node has"],
            ["create the pod without topology.kubernetes.io/zone=b"],
        ),
    ),
    "as many pods as the node may run": (
        [a_node_object("one", pods=1)],
        [a_pod("web", node="one")],
        a_pod(),
        Expected("one", ["has all the 1 pods that it may run"], ["delete default/web"]),
    ),
    "a taint": (
        [a_node_object("gpu", taints=[GPU])],
        [],
        a_pod(tolerations=[a_toleration("other")]),
        Expected(
            "gpu",
            ["has the taint gpu=true:NoSchedule"],
            ["add this toleration", "remove the taint gpu=true:NoSchedule from gpu"],
        ),
    ),
    "the node with fewer taints is nearer": (
        [a_node_object("two", taints=[GPU, a_taint("spot:NoExecute")]), a_node_object("one", taints=[GPU])],
        [],
        a_pod(),
        Expected(
            "one",
            ["has the taint gpu=true:NoSchedule"],
            ["add this toleration", "remove the taint gpu=true:NoSchedule from one"],
        ),
    ),
    "a node that is not ready is not tolerated but waited for": (
        [a_node_object("one", taints=[a_taint("node.kubernetes.io/not-ready:NoSchedule")])],
        [],
        a_pod(),
        Expected(
            "one",
            ["has the taint node.kubernetes.io/not-ready:NoSchedule"],
            ["wait until one has recovered: Kubernetes then removes node.kubernetes.io/not-ready:NoSchedule"],
        ),
    ),
    "a cordoned node": (
        [a_node_object("one", unschedulable=True, taints=[a_taint("node.kubernetes.io/unschedulable:NoSchedule")])],
        [],
        a_pod(),
        Expected("one", ["is cordoned", "has the taint node.kubernetes.io/unschedulable:NoSchedule"], ["uncordon one"]),
    ),
    "a label that a selector requires": (
        [a_node_object("one", labels={"disk": "hdd"})],
        [],
        a_pod(node_selector={"disk": "ssd", "kubernetes.io/hostname": "one"}),
        Expected(
            "one",
            ["has disk=hdd, not disk=ssd, which no node has"],
            ["label one with disk=ssd", "create the pod without disk=ssd"],
        ),
    ),
    "the name of a node is no label to change": (
        [a_node_object("one")],
        [],
        a_pod(node_selector={"kubernetes.io/hostname": "two"}),
        Expected(
            "one",
            ["has kubernetes.io/hostname=one, not kubernetes.io/hostname=two, which no node has"],
            ["create the pod without kubernetes.io/hostname=two"],
        ),
    ),
    "the nearest of several terms": (
        [a_node_object("one", labels={"disk": "ssd", "old": "yes"})],
        [],
        a_pod(
            affinity=requires(
                [("zone", "In", ["a"]), ("rack", "Exists", [])],
                [("disk", "In", ["ssd"]), ("old", "DoesNotExist", [])],
            )
        ),
        Expected(
            "one",
            ["has old=yes, not without old"],
            ["change the labels of one", "create the pod without its required node affinity"],
        ),
    ),
    "a node that the affinity does not name": (
        [a_node_object("one")],
        [],
        a_pod(affinity=named("two")),
        Expected(
            "one",
            ["is not among the nodes that the affinity names: two does not exist"],
            ["create the pod without its required node affinity"],
        ),
    ),
    "a host port that another pod holds": (
        [a_node_object("one")],
        [a_pod("web", ports=[80], node="one"), a_pod("other", ports=[81], node="one")],
        a_pod(ports=[80]),
        Expected("one", ["has no free host port 80/TCP (default/web holds it)"], ["delete default/web"]),
    ),
    "a domain with too many pods": (
        [*TWO_ZONES[:1], a_node_object("b", labels={"zone": "b"}, taints=[GPU])],
        [a_pod("web-1", labels={"app": "web"}, node="a")],
        a_pod(labels={"app": "web"}, spread=[a_constraint(labels={"app": "web"})]),
        Expected(
            "a",
            ["is in zone=a, which has 1 matching pod (maxSkew 1 allows 0 there before this one)"],
            ["allow maxSkew 2 of zone", "make the constraint on zone a preference"],
        ),
    ),
    "no topology label": (
        [a_node_object("one")],
        [],
        a_pod(labels={"app": "web"}, spread=[a_constraint(labels={"app": "web"})]),
        Expected("one", ["lacks the label zone"], ["make the constraint on zone a preference"]),
    ),
    "a pod that the anti-affinity avoids": (
        TWO_ZONES[:1],
        [a_pod("web-1", labels={"app": "web"}, node="a"), a_pod("db", node="a")],
        a_pod(labels={"app": "web"}, affinity=pod_rules(away=[a_term({"app": "web"})])),
        Expected(
            "a",
            ["shares a topology domain with default/web-1, which the pod's anti-affinity avoids"],
            ["delete default/web-1", "make its required anti-affinity a preference"],
        ),
    ),
    "a pod whose anti-affinity avoids this one": (
        TWO_ZONES[:1],
        [
            a_pod("alone", affinity=pod_rules(away=[a_term({"app": "web"})]), node="a"),
            a_pod("other", affinity=pod_rules(away=[a_term({"app": "db"})]), node="a"),
        ],
        a_pod(labels={"app": "web"}),
        Expected(
            "a",
            ["shares a topology domain with default/alone, whose anti-affinity avoids the pod"],
            ["delete default/alone"],
        ),
    ),
    "no pod that the affinity requires": (
        TWO_ZONES[:1],
        [],
        a_pod(affinity=pod_rules(near=[a_term({"app": "db"})])),
        Expected(
            "a",
            ["is in zone=a, where no pod matches the pod's affinity (no pod in the cluster matches it)"],
            ["make its required affinity a preference"],
        ),
    ),
    "two plugins at once are one change": (
        [a_node_object("one", cpu="4", taints=[GPU])],
        [a_pod("web", cpu="4", node="one")],
        a_pod(cpu="1"),
        Expected(
            "one",
            ["has the taint gpu=true:NoSchedule", "lacks 1 cpu"],
            ["add this toleration and delete default/web"],
        ),
    ),
}


@pytest.mark.parametrize(("nodes", "pods", "pod", "expected"), CASES.values(), ids=CASES.keys())
def test_the_nearest_node_what_it_lacks_and_what_would_help(
    nodes: list[Node], pods: list[Pod], pod: Pod, expected: Expected
):
    with recomputing(nodes, [*pods, pod]) as recomputation:
        found = recomputed(recomputation, pod)
    assert found["decision"]["node"] is None
    miss = next(each for each in found["nearest"] if each["node"] == expected.node)
    assert Expected(miss["node"], miss["missing"], [each["change"] for each in miss["changes"]]) == expected


@pytest.mark.parametrize(("nodes", "pods", "pod", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_to_be_pasted_into_the_manifest_places_the_pod_there(
    nodes: list[Node], pods: list[Pod], pod: Pod, expected: Expected
):
    with recomputing(nodes, [*pods, pod]) as recomputation:
        changes = [change for miss in recomputed(recomputation, pod)["nearest"] for change in miss["changes"]]
    for change in changes:
        if "manifest" not in change or change.get("command"):
            continue
        changed = _patched(pod, change["manifest"])
        with recomputing(nodes, [*pods, changed]) as recomputation:
            assert recomputed(recomputation, changed)["decision"]["node"] == change["node"], change["change"]


def _patched(pod: Pod, manifest: dict[str, Any]) -> Pod:
    """As `kubectl apply` merges it: containers by name, other lists replaced, null removes."""
    spec = msgspec.to_builtins(pod.spec)
    for field, value in manifest["spec"].items():
        if field == "containers":
            spec[field] = [{**before, **after} for before, after in zip(spec[field], value, strict=True)]
        elif value is None:
            spec.pop(field, None)
        else:
            spec[field] = value
    return Pod(metadata=pod.metadata, spec=msgspec.convert(spec, type(pod.spec)), status=pod.status)


def test_the_state_is_as_before_when_changes_were_tried():
    nodes, pods, pod, _ = CASES["two plugins at once are one change"]
    with recomputing(nodes, [*pods, pod]) as recomputation:
        first = recomputed(recomputation, pod)
        assert recomputed(recomputation, pod) == first
        assert (
            recomputation.state.compare(nodes, [record for view in recomputation.state.nodes for record in view.pods])
            == []
        )
        assert [record.key for view in recomputation.state.nodes for record in view.pods] == ["default/web"]


def test_nodes_that_fit_but_for_one_taint_are_counted():
    nodes = [a_node_object(f"gpu-{number}", taints=[GPU]) for number in range(3)]
    full = a_node_object("full", cpu="1", taints=[GPU])
    pod = a_pod(cpu="2")
    with recomputing([*nodes, full], [pod]) as recomputation:
        [miss] = recomputed(recomputation, pod)["nearest"]
    assert (miss["count"], miss["onlyThis"], miss["node"]) == (4, 3, "gpu-0")


def test_a_gated_pod_is_not_decided():
    pod = a_pod(gates=["later"])
    with recomputing([a_node_object()], [pod]) as recomputation:
        found = recomputed(recomputation, pod)
    assert found["gating"]["plugin"] == "SchedulingGates"
    assert "decision" not in found


def test_a_pod_of_another_scheduler_is_decided_by_the_first_profile():
    pod = a_pod(scheduler="theirs")
    with recomputing([a_node_object("one")], [pod]) as recomputation:
        found = recomputed(recomputation, pod)
    assert (found["isOtherScheduler"], found["profile"], found["decision"]["node"]) == (
        True,
        "default-scheduler",
        "one",
    )


def test_a_nominated_pod_of_higher_priority_is_counted():
    pod = a_pod("web", cpu="3")
    ahead = a_pod("ahead", cpu="3", priority=10, nominated="one")
    with recomputing([a_node_object("one", cpu="4")], [ahead, pod]) as recomputation:
        _, results = recomputation.results(pod, "one")
        assert results["NodeResourcesFit"].among_nominated == {"one"}
        assert recomputed(recomputation, pod)["decision"]["node"] is None


def test_a_bound_pod_shows_where_it_would_go_now_and_what_came_since():
    old, new = a_node_object("old", cpu="4"), a_node_object("new", cpu="8")
    new = Node(
        metadata=msgspec.structs.replace(new.metadata, creation_timestamp=timestamp(2_000)),
        spec=new.spec,
        status=new.status,
    )
    pod = a_pod("web", cpu="1", node="old")
    force_setattr(pod.status, "start_time", timestamp(1_000))
    later = a_pod("later", cpu="2", node="old")
    force_setattr(later.status, "start_time", timestamp(3_000))
    with_it = a_pod("with-it", cpu="100m", node="new")
    force_setattr(with_it.status, "start_time", timestamp(1_000))
    with recomputing([old, new], [pod, later, with_it]) as recomputation:
        found = recomputed(recomputation, pod)
        assert recomputation.state.pod(pod.uid) is not None, "it is there again"
    assert found["decision"]["node"] == "new"
    assert (found["runnerUp"]["node"], found["runnerUp"]["margin"] < 0) == ("new", True)
    since = found["since"]
    assert (since["newNodes"], since["newPods"], since["newPodsHere"]) == (["new"], 1, 1)
    assert since["podsOfTheSameSecond"] == 1, "times of a second do not show which was bound first"
    assert [row["node"] for row in found["table"]["nodes"]] == ["new", "old"]
    for row in found["table"]["nodes"]:
        assert row["total"] == sum(score["weighted"] for score in row["scores"])


def test_a_bound_pod_whose_node_is_gone_or_would_reject_it():
    pod = a_pod("web", cpu="1", node="gone")
    with recomputing([a_node_object("one")], [pod]) as recomputation:
        found = recomputed(recomputation, pod)
    assert found["ownNode"] == {"node": "gone", "isGone": True}
    [miss] = found["nearest"]
    assert miss["reasons"] == ["node gone does not exist"]
    assert [(change["change"], change["node"]) for change in miss["changes"]] == [
        ("delete the pod; create it again without spec.nodeName", "one")
    ]
    pod = a_pod("web", cpu="1", node="one")
    with recomputing([a_node_object("one", taints=[GPU])], [pod]) as recomputation:
        assert recomputed(recomputation, pod)["ownNode"]["plugin"] == "TaintToleration"


def test_a_table_has_the_chosen_node_also_where_it_is_cut():
    nodes = [a_node_object(f"node-{number}", cpu=str(4 + number)) for number in range(9)]
    pod = a_pod("web", cpu="1", node="node-0")
    with recomputing(nodes, [pod]) as recomputation:
        table = recomputed(recomputation, pod, most_nodes=3)["table"]
    assert table["nodes"][-1]["node"] == "node-0"
    assert len(table["nodes"]) == 4
    assert table["scoredNodes"] == 9
