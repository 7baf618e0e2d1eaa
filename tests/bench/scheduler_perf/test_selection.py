"""Which workloads run, and the reasons of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.scheduler_perf.cases import a_case

from mooring.base.errors import OperatorMistake
from mooring.bench.scheduler_perf.selection import choice, choose, has_labels

MEASURED = "- {opcode: createPods, count: 5, collectMetrics: true}"

FILTERS = {
    "a label that it has": ("performance", True),
    "a label with a plus": ("+performance", True),
    "a label that it has not": ("integration-test", False),
    "a label that it must not have": ("-short", False),
    "both": ("performance,-integration-test", True),
    "nothing": ("", True),
}


@pytest.mark.parametrize(("labels", "wanted"), FILTERS.values(), ids=FILTERS.keys())
def test_labels_are_filtered_as_upstream_does(tmp_path: Path, labels: str, wanted: bool):
    case = a_case(tmp_path, MEASURED, test_case="labels: [performance]", workload="labels: [short]")
    assert has_labels(case, labels) is wanted


def test_the_name_is_a_regular_expression(tmp_path: Path):
    case = a_case(tmp_path, MEASURED)
    assert len(choose([case], "^misc/So.e/", "")) == 1
    assert choose([case], "Other", "") == []
    with pytest.raises(OperatorMistake, match="--filter"):
        choose([case], "(", "")


IMPOSSIBLE = {
    "a gate that is locked": ("featureGates: {SchedulerQueueingHints: false}", MEASURED, "SchedulerQueueingHints"),
    "a gate that is not known": ("featureGates: {NoSuchGate: true}", MEASURED, "NoSuchGate is not known"),
    "a parameter that is missing": (
        "",
        "- {opcode: createPods, countParam: $n, collectMetrics: true}",
        "parameter n is undefined",
    ),
    "features that nodes declare": ("params: {numNodeDeclaredFeatures: 5}", MEASURED, "inside upstream's test program"),
    "claims of devices that no driver here publishes": (
        "",
        f"- {{opcode: allocResourceClaims, namespace: init}}\n{MEASURED}",
        "devices of createResourceDriver only",
    ),
    "no pods": (
        "",
        "- {opcode: startCollectingMetrics, namespaces: [default]}\n- {opcode: stopCollectingMetrics}",
        "schedules no pods",
    ),
}


@pytest.mark.parametrize(("workload", "operations", "reason"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_workload_that_cannot_run_has_a_reason(tmp_path: Path, workload: str, operations: str, reason: str):
    assert reason in choice(a_case(tmp_path, operations, workload=workload)).impossible


def test_a_gate_that_only_mooring_lacks_leaves_the_workload_to_other_schedulers(tmp_path: Path):
    found = choice(a_case(tmp_path, MEASURED, workload="featureGates: {GangScheduling: true}"))
    assert found.impossible == ""
    assert "GangScheduling" in found.not_with_mooring


def test_a_workload_without_gates_runs_with_all(tmp_path: Path):
    found = choice(a_case(tmp_path, MEASURED))
    assert (found.impossible, found.not_with_mooring) == ("", "")
