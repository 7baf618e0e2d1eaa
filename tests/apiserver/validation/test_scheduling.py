"""Validation of scheduling directives, and its messages."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.scheduling import check_spread, check_tolerations
from mooring.apiserver.validation.selectors import check_label_selector, check_node_selector_term

IN_NEEDS = "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
EXISTS_TAKES = "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
COMPARES = "values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
REQUIREMENTS = {
    "one of several values": (("In", ["a", "b"]), None, None),
    "one of no values": (("In", []), IN_NEEDS, IN_NEEDS),
    "none of no values": (("NotIn", []), IN_NEEDS, IN_NEEDS),
    "any value": (("Exists", []), None, None),
    "a value where any will do": (("DoesNotExist", ["a"]), EXISTS_TAKES, EXISTS_TAKES),
    "more than a number": (("Gt", ["1"]), 'operator: Invalid value: "Gt": not a valid selector operator', None),
    "more than two numbers": (
        ("Lt", ["1", "2"]),
        'operator: Invalid value: "Lt": not a valid selector operator',
        COMPARES,
    ),
}


@pytest.mark.parametrize(("given", "of_labels", "of_nodes"), REQUIREMENTS.values(), ids=REQUIREMENTS.keys())
def test_a_requirement(given: tuple[str, list[str]], of_labels: str | None, of_nodes: str | None):
    selector = {"matchExpressions": [{"key": "zone", "operator": given[0], "values": given[1]}]}
    for check, sentence in ((check_label_selector, of_labels), (check_node_selector_term, of_nodes)):
        errors = [str(error) for error in check(selector, "here")]
        assert errors == ([] if sentence is None else [f"here.matchExpressions[0].{sentence}"])


FIELDS = {
    "a name": ({"key": "metadata.name", "operator": "In", "values": ["node-1"]}, []),
    "two names": (
        {"key": "metadata.name", "operator": "NotIn", "values": ["a", "b"]},
        ["values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"],
    ),
    "another field, and whether it exists": (
        {"key": "spec.x", "operator": "Exists"},
        [
            'operator: Invalid value: "Exists": not a valid selector operator',
            'key: Invalid value: "spec.x": not a valid field selector key',
        ],
    ),
}


@pytest.mark.parametrize(("requirement", "sentences"), FIELDS.values(), ids=FIELDS.keys())
def test_a_requirement_of_a_field(requirement: dict[str, Any], sentences: list[str]):
    errors = check_node_selector_term({"matchFields": [requirement]}, "here")
    assert [str(error) for error in errors] == [f"here.matchFields[0].{sentence}" for sentence in sentences]


TOLERATIONS = {
    "everything": ({"operator": "Exists"}, []),
    "a key": ({"key": "a", "operator": "Equal", "value": "b"}, []),
    "a number": ({"key": "a", "operator": "Gt", "value": "-5"}, []),
    "more than a word": (
        {"key": "a", "operator": "Gt", "value": "five"},
        ['value: Invalid value: "five": must be a decimal integer'],
    ),
    "a value that cannot matter": (
        {"key": "a", "operator": "Exists", "value": "b"},
        ["operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"],
    ),
    "for a while what is no eviction": (
        {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
        ["effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"],
    ),
    "by an unknown operator": (
        {"key": "a", "operator": "Like"},
        ['operator: Unsupported value: "Like": supported values: "Equal", "Exists"'],
    ),
}


@pytest.mark.parametrize(("toleration", "sentences"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
def test_a_toleration(toleration: dict[str, Any], sentences: list[str]):
    assert [str(error) for error in check_tolerations([toleration], "here")] == [
        f"here[0].{each}" for each in sentences
    ]


def a_constraint(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


SPREADS = {
    "one constraint": ([a_constraint(minDomains=2, nodeTaintsPolicy="Honor")], []),
    "no key": ([a_constraint(topologyKey="")], ["[0].topologyKey: Required value: can not be empty"]),
    "no domains": ([a_constraint(minDomains=0)], ["[0].minDomains: Invalid value: 0: must be greater than zero"]),
    "domains of a soft constraint": (
        [a_constraint(minDomains=2, whenUnsatisfiable="ScheduleAnyway")],
        [
            "[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule,"
            " not ScheduleAnyway"
        ],
    ),
    "an unknown policy": (
        [a_constraint(nodeAffinityPolicy="Maybe")],
        ['[0].nodeAffinityPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"'],
    ),
    "the same twice": (
        [a_constraint(), a_constraint(maxSkew=2)],
        ['[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"'],
    ),
}


@pytest.mark.parametrize(("constraints", "sentences"), SPREADS.values(), ids=SPREADS.keys())
def test_spreading(constraints: list[dict[str, Any]], sentences: list[str]):
    assert [str(error) for error in check_spread(constraints, "here")] == [f"here{each}" for each in sentences]
