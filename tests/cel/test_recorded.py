"""Expressions compile, evaluate, fail and cost as in Kubernetes v1.36, in thousands of recorded cases.

`expressions` and `mistakes` were recorded from the CEL environment of the API server (with the variables of `shown`),
`selectors` from the compiler of device selectors. See tests/data/cel/README.md for what is in them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cel.shown import VALUES, VARIABLES, shown

from mooring.cel import CelError, CompileError, Environment
from mooring.cel.budget import Meter
from mooring.cel.device import AttributeValue, AttributeVersion, DeviceInput, compile_selector

FOLDER = Path(__file__).parents[1] / "data" / "cel"


def recorded(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def outcome(environment: Environment, expression: str, values: dict[str, Any]) -> dict[str, Any]:
    """What there is to compare of an expression, under the names of the tables."""
    try:
        program = environment.compile(expression)
    except CompileError as problem:
        return {"compileError": str(problem)}
    found: dict[str, Any] = {"type": str(program.type)}
    try:
        found["value"] = shown(program.evaluate(values))
    except CelError as problem:
        return {**found, "error": str(problem)}
    meter = Meter(None)
    assert shown(program.measure([values[name] for name in program.variables], meter)) == found["value"]
    return {**found, "cost": meter.cost}


def compared(outcome: dict[str, Any]) -> dict[str, Any]:
    """Without estimated costs, which we do not make; of a syntax error, that there is one and where the first is."""
    kept = {key: value for key, value in outcome.items() if key not in ("minCost", "maxCost")}
    if (first := re.search(r"ERROR: <input>:(\d+:-?\d+): Syntax error", kept.get("compileError", ""))) is not None:
        return {"syntaxErrorAt": first[1]}
    return kept


@pytest.mark.parametrize("table", ["expressions", "mistakes"])
def test_expressions_are_what_they_are_in_kubernetes(table: str) -> None:
    environment = Environment(VARIABLES)
    differing = {
        case["expression"]: (case["expect"], found)
        for case in recorded(table)
        if compared(found := outcome(environment, case["expression"], VALUES)) != compared(case["expect"])
    }
    assert differing == {}


def the_device(recorded_device: dict[str, Any]) -> DeviceInput:
    attributes: dict[str, AttributeValue] = {}
    for name, value in recorded_device["attributes"].items():
        ((kind, of),) = value.items()
        attributes[name] = AttributeVersion(of) if kind == "version" else of
    return DeviceInput(recorded_device["driver"], attributes, recorded_device["capacity"], recorded_device["multi"])


def selection(expression: str, device: DeviceInput) -> dict[str, Any]:
    selector = compile_selector(expression)
    if selector.error is not None:
        return {"compileError": selector.error}
    assert selector.program is not None
    program = selector.program
    found: dict[str, Any] = {"type": str(program.type)}
    try:
        found["value"] = shown(selector.matches(device))
    except CelError as problem:
        return {**found, "error": str(problem)}
    meter = Meter(None)
    program.measure([device.view], meter)
    return {**found, "cost": meter.cost}


def test_selectors_select_what_they_select_in_kubernetes() -> None:
    differing = {}
    for case in recorded("selectors"):
        found = selection(case["expression"], the_device(case["device"]))
        if "cost" not in case["expect"]:
            found.pop("cost", None)  # upstream's order of maps is random, and with it what a loop costs
        if compared(found) != compared(case["expect"]):
            differing[case["expression"]] = (case["expect"], found)
    assert differing == {}


def test_an_expression_is_metered_under_a_limit_that_it_exceeds() -> None:
    """The rough bound of what an expression can cost is never below what it does cost."""
    costs = {case["expression"]: case["expect"]["cost"] for case in recorded("expressions") if "cost" in case["expect"]}
    largest = max(len(each) for each in VALUES.values() if isinstance(each, (str, bytes, list, dict)))
    unmetered = [
        expression
        for expression, cost in costs.items()
        if not Environment(VARIABLES, largest_value=largest, cost_limit=cost - 1).compile(expression).is_metered
    ]
    assert len(costs) > 1000
    assert unmetered == []
