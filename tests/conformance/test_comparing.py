"""What counts as a difference, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.builders import a_case, a_configuration, a_node, a_pod, agreeing_decision, recorded

from mooring_conformance.running import Options, run_case

Json = dict[str, Any]

TAINT = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
TWO_FIT = a_case(a_node("a"), a_node("b"), a_node("c", taints=TAINT))
ONE_FITS = a_case(a_node("a"), a_node("b", taints=TAINT))
NOTHING_FITS = a_case(a_node("a", taints=TAINT), a_node("b", cpu="50m"))
HIGHER = a_case(a_node("a", cpu="1"), a_pod("low", cpu="1", node="a"), pod=a_pod(cpu="1", priority=10))
NOMINATED = a_case(a_node("a"), a_node("b"), pod=a_pod(nominated="b"))
GATED = a_case(a_node("a"), pod=a_pod(schedulingGates=[{"name": "wait"}]))
NOT_A_PLUGIN = a_case(a_node("a"), config=a_configuration(plugins={"filter": {"enabled": [{"name": "NoSuchPlugin"}]}}))


def kinds(case: Json, expect: Json) -> list[tuple[str, str, str]]:
    """What differs, where, and whose rule it is; in the same way however it is decided."""
    found = run_case(recorded(case, expect), Options())
    assert len(found) <= 1, "the ways do not agree with each other"
    return [(each.kind, each.where, each.plugin) for differing in found for each in differing.differences]


@pytest.mark.parametrize(
    "case",
    [TWO_FIT, ONE_FITS, NOTHING_FITS, HIGHER, NOMINATED, GATED, a_case()],
    ids=["two fit", "one fits", "nothing fits", "one must go", "nominated", "gated", "no nodes"],
)
def test_the_same_decision_has_no_difference(case):
    assert kinds(case, agreeing_decision(case)) == []


def changed(case: Json, *path: str, to: Any) -> tuple[Json, Json]:
    """A case, and our decision with something else in one place."""
    expect = agreeing_decision(case)
    inner = expect
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return case, expect


VERDICT = {"plugin": "NodeName", "code": "Unschedulable", "reasons": ["node(s) didn't match"]}
PLANTED = {
    "another result": (*changed(TWO_FIT, "result", to="error"), ("result", "feasible instead of error", "")),
    "a node that passes": (*changed(TWO_FIT, "nodes", "c", to=None), ("node", "c", "TaintToleration")),
    "a node that is refused": (*changed(TWO_FIT, "nodes", "a", to=VERDICT), ("node", "a", "NodeName")),
    "another code": (
        *changed(NOTHING_FITS, "nodes", "a", "code", to="Unschedulable"),
        ("node", "a", "TaintToleration"),
    ),
    "a pre_filter that runs": (
        *changed(TWO_FIT, "preFilter", "skipped", to=[]),
        ("preFilter.skipped", "", "DynamicResources"),
    ),
    "a pre_filter that refuses": (
        *changed(NOTHING_FITS, "preFilter", "code", to="Unschedulable"),
        ("preFilter", "", ""),
    ),
    "a score": (
        *changed(TWO_FIT, "scores", "a", "raw", "NodeResourcesFit", to=1),
        ("score", "a", "NodeResourcesFit"),
    ),
    "a total": (*changed(TWO_FIT, "scores", "b", "total", to=1), ("total", "b", "")),
    "a score that is skipped": (*changed(TWO_FIT, "scoreSkipped", to=[]), ("scoreSkipped", "", "InterPodAffinity")),
    "another best node": (*changed(TWO_FIT, "best", to=["c"]), ("chosen", "", "")),
    "another only node": (*changed(ONE_FITS, "best", to=["b"]), ("chosen", "", "")),
    "another message": (*changed(NOTHING_FITS, "message", to="0/2 nodes"), ("message", "", "")),
    "no nodes, other words": (*changed(a_case(), "message", to="none"), ("message", "", "")),
    "no post_filter": (*changed(NOTHING_FITS, "postFilter", to=None), ("postFilter", "", "")),
    "another code of post_filter": (
        *changed(NOTHING_FITS, "postFilter", "code", to="Error"),
        ("postFilter.code", "", ""),
    ),
    "other words of post_filter": (
        *changed(NOTHING_FITS, "postFilter", "message", to="no"),
        ("postFilter.message", "", ""),
    ),
    "a nomination that is cleared": (
        *changed(NOTHING_FITS, "postFilter", "nominatedNode", to="a"),
        ("postFilter.nominatedNode", "", ""),
    ),
    "another nominated node": (
        *changed(HIGHER, "postFilter", "nominatedNodes", to=["b"]),
        ("postFilter.nominatedNode", "", ""),
    ),
    "other victims": (
        *changed(HIGHER, "postFilter", "candidates", "a", "victims", to=["default/x"]),
        ("postFilter.victims", "a", ""),
    ),
    "other deletions": (*changed(HIGHER, "postFilter", "deleted", to=[]), ("postFilter.deleted", "a", "")),
    "more budgets violated": (
        *changed(HIGHER, "postFilter", "candidates", "a", "numPDBViolations", to=1),
        ("postFilter.candidate", "a", ""),
    ),
    "another gate": (
        *changed(GATED, "preEnqueue", "plugin", to="DynamicResources"),
        ("preEnqueue", "", "DynamicResources"),
    ),
    "a configuration that is accepted": (
        NOT_A_PLUGIN,
        {"name": "case", "result": "feasible", "best": ["a"], "feasible": ["a"]},
        ("result", "rejected instead of feasible", ""),
    ),
    "a configuration that is refused": (
        TWO_FIT,
        {"name": "case", "error": "config: no"},
        ("result", "feasible instead of rejected", ""),
    ),
}


@pytest.mark.parametrize(("case", "expect", "difference"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_difference_is_found(case, expect, difference):
    assert kinds(case, expect)[0] == difference


ALIKE = {
    "any of the best nodes is right": changed(TWO_FIT, "best", to=["a", "b", "c"]),
    "of an error it counts that it is one": (
        a_case(a_node("a"), a_node("b"), config=a_configuration(plugins={"preScore": {"disabled": [{"name": "*"}]}})),
        {"name": "case", "result": "error", "message": "other words"},
    ),
    "of a wrong configuration it counts that it is refused": (NOT_A_PLUGIN, {"name": "case", "error": "config: no"}),
    "a single node is not scored": (
        ONE_FITS,
        {**agreeing_decision(ONE_FITS), "scores": {"a": {"total": 7, "raw": {}, "normalized": {}, "scores": {}}}},
    ),
    "a single node whose scoring would fail is taken": (
        ONE_FITS,
        {**agreeing_decision(ONE_FITS), "scoreError": "cannot score"},
    ),
    "a nominated node that passes is taken whatever its score": changed(NOMINATED, "best", to=["a"]),
    "any of the nodes that tie is right for a nomination": changed(
        HIGHER, "postFilter", "nominatedNodes", to=["0", "a"]
    ),
    "where candidates are sampled, nodes that we did not try are no difference": (
        HIGHER,
        {
            **agreeing_decision(HIGHER),
            "postFilter": {
                **agreeing_decision(HIGHER)["postFilter"],
                "sampled": True,
                "candidates": {
                    "a": {"victims": ["default/low"], "numPDBViolations": 0},
                    "b": {"victims": ["default/x"], "numPDBViolations": 0},
                },
            },
        },
    ),
}


@pytest.mark.parametrize(("case", "expect"), ALIKE.values(), ids=ALIKE.keys())
def test_what_may_differ(case, expect):
    assert kinds(case, expect) == []


def test_pods_that_have_ended_are_not_seen():
    full = a_case(a_node("a", cpu="1"), a_pod("ended", cpu="1", node="a", phase="Succeeded"), pod=a_pod(cpu="1"))
    assert agreeing_decision(full)["result"] == "feasible"


def test_nominated_pods_keep_their_room():
    kept = a_case(a_node("a", cpu="1"), a_pod("nominated", cpu="1", nominated="a", priority=5), pod=a_pod(cpu="1"))
    assert agreeing_decision(kept)["result"] == "unschedulable"
    kept["objects"][1]["spec"]["schedulerName"] = "another-scheduler"
    assert agreeing_decision(kept)["result"] == "feasible"


@pytest.mark.parametrize("gates", [{"DRAAdminAccess": False}, {"NoSuchGate": True}])
def test_gates_that_cannot_be_set_are_an_error(gates):
    case = a_case(a_node("a")) | {"featureGates": gates}
    assert kinds(case, {"error": "feature gates: cannot set"}) == []
    assert kinds(case, agreeing_decision(a_case(a_node("a")))) != []


ONLY = {
    "the named plugin's rejection": (changed(TWO_FIT, "nodes", "c", to=None), "TaintToleration", ["node"]),
    "not another's": (changed(TWO_FIT, "nodes", "c", to=None), "NodeName", []),
    "a node that a later plugin rejected": (changed(TWO_FIT, "nodes", "c", to=VERDICT), "NodeResourcesFit", []),
    "the named plugin's scores": (
        changed(TWO_FIT, "scores", "a", "raw", "NodeResourcesFit", to=1),
        "NodeResourcesFit",
        ["score"],
    ),
    "not another's scores": (changed(TWO_FIT, "scores", "a", "raw", "NodeResourcesFit", to=1), "ImageLocality", []),
    "its skip": (changed(TWO_FIT, "preFilter", "skipped", to=[]), "NodePorts", ["preFilter.skipped"]),
    "its gate": (changed(GATED, "preEnqueue", "code", to="Pending"), "SchedulingGates", ["preEnqueue"]),
    "not another's gate": (changed(GATED, "preEnqueue", "plugin", to="X"), "SchedulingGates", []),
    "its plan": (changed(HIGHER, "postFilter", "code", to="Error"), "DefaultPreemption", ["postFilter.code"]),
    "not the message": (changed(NOTHING_FITS, "message", to="0/2 nodes"), "DefaultPreemption", []),
}


@pytest.mark.parametrize(("planted", "plugin", "found"), ONLY.values(), ids=ONLY.keys())
def test_only_the_results_of_a_plugin(planted, plugin, found):
    differing = run_case(recorded(*planted), Options(plugins=frozenset({plugin})))
    assert [each.kind for one in differing for each in one.differences] == found
