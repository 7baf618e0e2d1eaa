"""TaintToleration: hard taints refuse, soft ones count, and what requeues a refused pod."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import normalized, requeues, verdict

from mooring.framework import UNRESOLVABLE
from mooring.objects.core import Toleration
from mooring.plugins.default.taint_toleration import UNTOLERATED, TaintToleration
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_node_object, a_plugin, a_pod, a_taint, a_toleration

REFUSED = (UNRESOLVABLE, (UNTOLERATED,))


def a_tolerant_pod(*tolerations: str, uid: str = "me"):
    return a_pod(uid=uid, tolerations=[a_toleration(text) for text in tolerations])


def a_tainted_node(*taints: str, name: str = "node"):
    return a_node(name, taints=[a_taint(text) for text in taints])


CASES = {
    "a node without taints accepts any pod": ((), (), None),
    "an untolerated NoSchedule taint refuses": ((), ("gpu=yes:NoSchedule",), REFUSED),
    "so does NoExecute": ((), ("gpu=yes:NoExecute",), REFUSED),
    "PreferNoSchedule never refuses": ((), ("gpu=yes:PreferNoSchedule",), None),
    "the same key, value and effect are tolerated": (("gpu=yes:NoSchedule",), ("gpu=yes:NoSchedule",), None),
    "another value is not": (("gpu=no:NoSchedule",), ("gpu=yes:NoSchedule",), REFUSED),
    "without a value any value is tolerated": (("gpu",), ("gpu=yes:NoSchedule",), None),
    "without an effect any effect is tolerated": (("gpu=yes",), ("gpu=yes:NoExecute",), None),
    "another effect is not": (("gpu=yes:NoExecute",), ("gpu=yes:NoSchedule",), REFUSED),
    "every taint needs its toleration": (("a",), ("a:NoSchedule", "b:NoSchedule"), REFUSED),
    "an empty key tolerates everything": (("*",), ("a:NoSchedule", "b:NoExecute"), None),
}


@pytest.mark.parametrize(("tolerated", "tainted", "refusal"), CASES.values(), ids=CASES.keys())
def test_hard_taints(tolerated, tainted, refusal):
    pod = a_tolerant_pod(*tolerated)
    assert verdict(a_plugin(TaintToleration).filter(pod, a_tainted_node(*tainted), a_cycle(pod))) == refusal


@pytest.mark.parametrize(
    ("operator", "taint", "refusal"),
    [
        ("Gt", "7", None),
        ("Gt", "5", REFUSED),
        ("Lt", "7", REFUSED),
        ("Lt", "-7", None),
        ("Lt", "0", None),
        ("Gt", "x", REFUSED),
        ("Gt", "", REFUSED),
        ("Gt", "07", REFUSED),
        ("Gt", "+7", REFUSED),
        ("Gt", "9" * 20, REFUSED),
    ],
)
def test_numbers_compare_where_the_gate_is_on(operator, taint, refusal):
    gates = Services(gates={"TaintTolerationComparisonOperators": True})
    pod = a_pod(tolerations=[Toleration(key="sla", operator=operator, value="5")])
    node = a_tainted_node(f"sla={taint}:NoSchedule")
    assert verdict(a_plugin(TaintToleration, gates).filter(pod, node, a_cycle(pod))) == refusal
    assert verdict(a_plugin(TaintToleration).filter(pod, node, a_cycle(pod))) == REFUSED


def test_fewer_untolerated_soft_taints_are_better():
    cluster = a_cluster(
        a_tainted_node(name="clean"),
        a_tainted_node("a:PreferNoSchedule", name="one"),
        a_tainted_node(
            "a:PreferNoSchedule", "b:PreferNoSchedule", "c:PreferNoSchedule", name="two and a tolerated one"
        ),
        plugins=[a_plugin(TaintToleration)],
    )
    decision = cluster.decide(a_tolerant_pod("c:PreferNoSchedule"))
    assert normalized(decision, "TaintToleration") == {"clean": 100, "one": 50, "two and a tolerated one": 0}


def test_a_toleration_of_a_hard_effect_does_not_cover_a_soft_taint():
    pod = a_tolerant_pod("a:NoSchedule")
    assert a_plugin(TaintToleration).score(pod, a_tainted_node("a:PreferNoSchedule"), a_cycle(pod)) == 1


def _tainted(*taints: str):
    return a_node_object(taints=[a_taint(text) for text in taints])


WAKING = {
    "a new node it tolerates": ((), (None, _tainted()), True),
    "a new node it does not": ((), (None, _tainted("a:NoSchedule")), False),
    "a node that lost its taint": ((), (_tainted("a:NoSchedule"), _tainted()), True),
    "a node it tolerated before": (("a",), (_tainted("a:NoSchedule"), _tainted()), False),
    "its own new toleration": ((), (a_tolerant_pod(), a_tolerant_pod("a")), True),
    "another pod's": ((), (a_tolerant_pod(uid="other"), a_tolerant_pod("a", uid="other")), False),
}


@pytest.mark.parametrize(("tolerated", "change", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(tolerated, change, expected):
    assert requeues(a_plugin(TaintToleration), a_tolerant_pod(*tolerated), *change) is expected
