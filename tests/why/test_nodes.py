"""A node explained: what is free, what runs there, and which pending pods it would take."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.base.errors import OperatorMistake
from mooring.config import default_configuration
from mooring.explain import node_in_full
from mooring.framework import Pod
from mooring.objects import Node
from mooring.plugins.catalogue import catalogue
from mooring.simulator import Cluster
from mooring.testing import a_node_object, a_pod
from mooring.why import Recomputation, explain_node
from mooring.why import nodes as nodes_explained

NODE = a_node_object("one", cpu="4")


def explained(pods: list[Pod], name: str = "one", nodes: tuple[Node, ...] = (NODE,)) -> dict[str, Any]:
    registry = catalogue()
    with Recomputation(Cluster(list(nodes), pods), default_configuration(registry), registry) as recomputation:
        return explain_node(recomputation, name)


def test_resources_show_what_is_free():
    found = explained([a_pod("web", cpu="1500m", node="one")])
    cpu = next(row for row in found["resources"] if row["resource"] == "cpu")
    assert (cpu["allocatable"], cpu["requested"], cpu["free"]) == ("4", "1500m", "2500m")
    assert [pod["pod"] for pod in found["pods"]] == ["default/web"]


def test_pending_pods_fit_or_are_grouped_by_the_filters_that_reject_them():
    pods = [
        a_pod("running", cpu="3", node="one"),
        a_pod("small", cpu="1"),
        a_pod("large-1", cpu="2"),
        a_pod("large-2", cpu="3"),
        a_pod("elsewhere", cpu="2", node_selector={"zone": "a"}),
        a_pod("later", cpu="1", gates=["wait"]),
    ]
    found = explained(pods)
    assert found["fits"] == ["default/small"]
    assert found["gated"] == ["default/later"]
    assert [([each["plugin"] for each in group["filters"]], group["pods"]) for group in found["rejected"]] == [
        (["NodeResourcesFit"], ["default/large-1", "default/large-2"]),
        (["NodeAffinity", "NodeResourcesFit"], ["default/elsewhere"]),
    ]
    assert found["rejected"][0]["first"] == {"pod": "default/large-1", "missing": ["lacks 1 cpu"]}


def test_of_many_pending_pods_those_of_highest_priority_are_evaluated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nodes_explained, "MOST_PENDING", 1)
    found = explained([a_pod("low", cpu="1"), a_pod("high", cpu="1", priority=5)])
    assert (found["pending"], found["evaluated"], found["fits"]) == (2, 1, ["default/high"])
    assert "the 1 of highest priority of 2 pending pods" in node_in_full(found)


@pytest.mark.parametrize(
    ("nodes", "name", "message"),
    [
        ((NODE,), "onee", 'there is no node "onee". Did you mean "one"?'),
        ((NODE,), "quite-another", 'there is no node "quite-another". The cluster has one.'),
        ((), "one", 'there is no node "one": the cluster has none.'),
    ],
)
def test_a_node_that_does_not_exist_is_named_with_those_that_do(nodes: tuple[Node, ...], name: str, message: str):
    with pytest.raises(OperatorMistake) as mistake:
        explained([], name, nodes)
    assert str(mistake.value) == message


def test_the_text_begins_with_the_state_of_the_node():
    found = explained([a_pod("db", cpu="5")]) | {"isUnschedulable": True, "isReady": False}
    text = node_in_full(found)
    assert text.startswith("Node one is not ready and cordoned and runs 0 pods.\n")
    assert "  It rejects 1 pod: default/db\n    NodeResourcesFit: Insufficient cpu\n" in text
    assert text.endswith("    for default/db it has only 4 of the 5 cpu requested")


def test_without_pending_pods_that_is_the_last_line():
    assert node_in_full(explained([])).endswith("\n\nNo pod is pending.")


def test_all_pods_of_a_node_are_shown_when_wide():
    found = explained([a_pod(f"web-{number}", cpu="100m", node="one") for number in range(12)])
    assert "… and 2 more pods: -o wide shows all." in node_in_full(found)
    assert "default/web-11" in node_in_full(found, is_wide=True)
