"""A case gets small and stays interesting."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.builders import a_case, a_configuration, a_node, a_pod

from mooring_conformance.shrinking import Shrinker

TAINT = {"key": "gpu", "effect": "NoSchedule"}


def test_everything_that_does_not_matter_goes():
    case = a_case(*(a_node(f"node-{number}") for number in range(20)), config=a_configuration())
    case["objects"][13]["spec"]["taints"] = [{"key": "other"}, TAINT, {"key": "more"}]
    case["featureGates"] = {"StorageCapacityScoring": True}
    small = Shrinker(lambda smaller: json.dumps(TAINT) in json.dumps(smaller)).shrink(case)
    assert small == {
        "name": "case",
        "config": None,
        "objects": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "node-13"},
                "spec": {"taints": [TAINT]},
                "status": {},
            }
        ],
        "pod": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "incoming"},
            "spec": {"containers": [{"name": "c"}]},
            "status": {},
        },
    }


def test_the_configuration_stays_where_it_matters():
    case = a_case(config=a_configuration(plugins={"score": {"disabled": [{"name": "*"}]}, "filter": {}}))
    small = Shrinker(lambda smaller: "*" in json.dumps(smaller)).shrink(case)
    assert small["config"]["profiles"] == [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]


def test_the_case_itself_is_not_changed():
    case = a_case(a_node("a"), pod=a_pod())
    before = json.dumps(case)
    Shrinker(bool).shrink(case)
    assert json.dumps(case) == before


def test_the_number_of_trials_is_bounded():
    tried: list[Any] = []

    def is_interesting(case: Any) -> bool:
        tried.append(case)
        return False

    Shrinker(is_interesting, most=7).shrink(a_case(a_node("a"), a_node("b")))
    assert len(tried) == 7


@given(st.sets(st.integers(0, 30), min_size=1, max_size=4), st.integers(31, 60))
def test_exactly_the_objects_that_matter_are_left(wanted, count):
    def is_interesting(case: Any) -> bool:
        return bool(wanted <= {int(item["metadata"]["name"]) for item in case["objects"]})

    case = a_case(*({"kind": "Node", "metadata": {"name": str(number)}} for number in range(count)))
    small = Shrinker(is_interesting).shrink(case)
    assert {int(item["metadata"]["name"]) for item in small["objects"]} == wanted
