"""Which workloads are run, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mooring.base.errors import OperatorMistake, Problem
from mooring.bench.scheduler_commands import gates_flag
from mooring.bench.scheduler_perf.operations import (
    AllocResourceClaims,
    CreatePods,
    CreateResourceDriver,
    WorkloadError,
)
from mooring.bench.scheduler_perf.workload_files import Case
from mooring.framework.gate_table import GATES
from mooring.framework.gates import read_gates

DECLARED_FEATURES = "numNodeDeclaredFeatures"


@dataclass(frozen=True)
class CaseChoice:
    """A workload, and why it cannot run: with any scheduler, or with Mooring."""

    case: Case
    impossible: str = ""
    not_with_mooring: str = ""


def choose(cases: Iterable[Case], name_pattern: str, label_filter: str) -> list[CaseChoice]:
    """The workloads whose name and labels are wanted."""
    try:
        pattern = re.compile(name_pattern)
    except re.error as error:
        raise OperatorMistake.found_in(
            "--filter", [Problem(name_pattern, f"is no regular expression: {error}")]
        ) from error
    return [choice(case) for case in cases if pattern.search(case.name) and has_labels(case, label_filter)]


def has_labels(case: Case, label_filter: str) -> bool:
    """`performance,-short`: the labels that a workload must have, and with `-` those that it must not have."""
    for wanted in filter(None, (part.strip() for part in label_filter.split(","))):
        if (wanted.lstrip("+-") in case.labels) is wanted.startswith("-"):
            return False
    return True


def choice(case: Case) -> CaseChoice:
    return CaseChoice(case, "; ".join(_impossible(case)), _not_with_mooring(case))


def _impossible(case: Case) -> Iterator[str]:
    if DECLARED_FEATURES in case.workload.params:
        yield "the features that nodes declare are registered inside upstream's test program"
        return
    try:
        operations = case.operations()
    except WorkloadError as error:
        yield str(error)
        return
    if not any(isinstance(operation, CreatePods) for operation in operations):
        yield "it schedules no pods: it measures an informer inside the scheduler"
    kinds = {type(operation) for operation in operations}
    if AllocResourceClaims in kinds and CreateResourceDriver not in kinds:
        yield "allocResourceClaims allocates devices of createResourceDriver only"
    for name, value in case.feature_gates.items():
        gate = GATES.get(name)
        if gate is None:
            yield f"feature gate {name} is not known"
        elif gate.locked and value is not gate.default:
            yield f"feature gate {name} is locked to {str(gate.default).lower()}{_twin(case)}"


def _twin(case: Case) -> str:
    """The same workload with the gate's only value."""
    for other in case.test_case.workloads:
        if other is not case.workload and other.params == case.workload.params:
            gates = case.test_case.feature_gates | other.feature_gates
            if all(GATES[name].default is value for name, value in gates.items() if name in GATES):
                return f"; {other.name} is the same with it"
    return ""


def _not_with_mooring(case: Case) -> str:
    try:
        read_gates([gates_flag(case.feature_gates.items())])
    except OperatorMistake as mistake:
        return "; ".join(f"{problem.path.split()[-1]}: {problem.message}" for problem in mistake.problems)
    return ""
