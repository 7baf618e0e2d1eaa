"""Every filter's verdict on one node, its scores beside the chosen node's, and what would bring the pod there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr
from tests.why.clusters import recomputing

from mooring.base.errors import OperatorMistake
from mooring.explain import why_not_in_full
from mooring.objects.core import Toleration
from mooring.testing import a_node_object, a_pod
from mooring.testing.builders import a_taint, a_toleration
from mooring.why import why_not

GPU = a_taint("gpu=true:NoSchedule")


def verdicts(found: dict[str, Any], verdict: str) -> list[str]:
    return [each["plugin"] for each in found["filters"] if each["verdict"] == verdict]


def changes(found: dict[str, Any]) -> list[str]:
    assert all(change["node"] == found["node"] for change in found["changes"])
    return [change["change"] for change in found["changes"]]


def test_all_filters_that_reject_the_node_are_named_not_only_the_first():
    pod = a_pod(cpu="2", node_selector={"disk": "ssd"})
    nodes = [a_node_object("bad", cpu="1", taints=[GPU]), a_node_object("good", labels={"disk": "ssd"})]
    with recomputing(nodes, [pod]) as recomputation:
        found = why_not(recomputation, pod, "bad")
    assert verdicts(found, "rejects") == ["TaintToleration", "NodeAffinity", "NodeResourcesFit"]
    assert "NodeName" in verdicts(found, "passes")
    assert "NodePorts" in verdicts(found, "skips")
    assert (found["isFeasible"], found["chosen"]) == (False, "good")
    assert found["missing"] == [
        "has the taint gpu=true:NoSchedule",
        "lacks the label disk=ssd",
        "has only 1 of the 2 cpu requested",
    ]
    assert changes(found) == [
        "add this toleration and label bad with disk=ssd and request 1 cpu instead of 2 and "
        "require bad: otherwise another one is chosen"
    ]


def test_a_node_that_would_win_needs_no_more_than_the_toleration():
    pod = a_pod(cpu="1", node="small")
    nodes = [a_node_object("small", cpu="2"), a_node_object("gpu", cpu="64", memory="512Gi", taints=[GPU])]
    with recomputing(nodes, [pod]) as recomputation:
        found = why_not(recomputation, pod, "gpu")
    assert (found["runsOn"], found["chosen"]) == ("small", "small")
    assert changes(found) == ["add this toleration", "remove the taint gpu=true:NoSchedule from gpu"]
    assert [row["node"] for row in found["scores"]["nodes"]] == ["gpu", "small"]


def test_a_node_with_a_lower_score_must_be_required():
    pod = a_pod(cpu="1")
    with recomputing([a_node_object("small", cpu="2"), a_node_object("large", cpu="64")], [pod]) as recomputation:
        found = why_not(recomputation, pod, "small")
    assert (found["isFeasible"], found["chosen"]) == (True, "large")
    assert "missing" not in found
    assert changes(found) == ["require small: otherwise another one is chosen"]
    assert found["changes"][0]["manifest"] == {"spec": {"nodeSelector": {"kubernetes.io/hostname": "small"}}}
    small, large = found["scores"]["nodes"]
    assert small["total"] < large["total"]


def test_a_node_without_a_host_name_is_required_by_its_own():
    small = a_node_object("small", cpu="2")
    force_setattr(small.metadata, "labels", {})
    pod = a_pod(cpu="1")
    with recomputing([small, a_node_object("large", cpu="64")], [pod]) as recomputation:
        found = why_not(recomputation, pod, "small")
    assert "matchFields" in str(found["changes"][0]["manifest"])


def test_the_node_where_the_pod_runs_or_would_go_needs_no_change():
    pod = a_pod(cpu="1", node="one")
    with recomputing([a_node_object("one")], [pod]) as recomputation:
        found = why_not(recomputation, pod, "one")
    assert (found["runsOn"], found["chosen"], "changes" in found) == ("one", "one", False)


def test_a_node_that_nothing_known_here_helps():
    pod = a_pod(requests={"example.com/gpu": "1"})
    with recomputing([a_node_object("one")], [pod]) as recomputation:
        assert why_not(recomputation, pod, "one")["changes"] == []


def test_an_unknown_node_is_a_mistake_with_the_nearest_name():
    pod = a_pod()
    with (
        recomputing([a_node_object("node-1")], [pod]) as recomputation,
        pytest.raises(OperatorMistake, match=r'there is no node "node-11"\. Did you mean "node-1"\?'),
    ):
        why_not(recomputation, pod, "node-11")


def test_a_gated_pod_is_not_shown_as_one_that_waits_for_its_turn():
    pod = a_pod("held", cpu="1", gates=["example.com/approval"])
    nodes = [a_node_object("small", cpu="2"), a_node_object("large", cpu="64")]
    with recomputing(nodes, [pod]) as recomputation:
        best, other = why_not(recomputation, pod, "large"), why_not(recomputation, pod, "small")
    reasons = ["waiting for scheduling gates: [example.com/approval]"]
    assert best["gating"] == other["gating"] == {"plugin": "SchedulingGates", "reasons": reasons}
    gated = f"Pod default/held is kept out of the queue by SchedulingGates ({reasons[0]}); without that it would"
    assert why_not_in_full(best).splitlines()[0] == f"{gated} go to large."
    assert why_not_in_full(other).splitlines()[0] == f"{gated} fit small, but go to large."


def test_a_toleration_to_paste_leaves_out_those_that_the_api_server_adds():
    added = [
        Toleration(key=f"node.kubernetes.io/{condition}", operator="Exists", effect="NoExecute", toleration_seconds=300)
        for condition in ("not-ready", "unreachable")
    ]
    pod = a_pod(cpu="1", tolerations=[*added, a_toleration("other")])
    with recomputing([a_node_object("gpu", taints=[GPU])], [pod]) as recomputation:
        found = why_not(recomputation, pod, "gpu")
    pasted = found["changes"][0]["manifest"]["spec"]["tolerations"]
    assert [each["key"] for each in pasted] == ["other", "gpu"]
