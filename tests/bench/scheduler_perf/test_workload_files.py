"""Upstream's workload files are read as they are, and what does not fit is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.scheduler_perf.cases import a_case

from mooring.base.errors import OperatorMistake
from mooring.bench.scheduler_perf.creating import PodBatch, Templates
from mooring.bench.scheduler_perf.operations import CreateNodes, CreatePods, WorkloadError
from mooring.bench.scheduler_perf.selection import choice
from mooring.bench.scheduler_perf.workload_files import find_folder, read_cases

MEASURED = "- {opcode: createPods, count: 5, collectMetrics: true}"


def test_every_file_of_upstream_is_read_and_only_declared_features_lack_an_operation():
    try:
        cases = read_cases([find_folder()])
    except OperatorMistake as error:
        pytest.skip(str(error))
    unreadable = set()
    for case in cases:
        try:
            case.operations()
        except WorkloadError:
            unreadable.add(case.topic)
    assert len(cases) > 200
    assert unreadable == {"nodedeclaredfeatures"}


def test_every_pod_template_of_upstream_can_be_rendered():
    try:
        cases = read_cases([find_folder()])
    except OperatorMistake as error:
        pytest.skip(str(error))
    for case in cases:
        if "short" in case.labels and not choice(case).impossible:
            templates = Templates(case)
            for operation in case.operations():
                if isinstance(operation, CreatePods):
                    PodBatch(operation, templates)


def test_parameters_take_the_place_of_counts(tmp_path: Path):
    case = a_case(
        tmp_path,
        "- {opcode: createNodes, countParam: $initNodes}\n"
        "- {opcode: createPods, countParam: $pods, collectMetrics: true}",
        workload="params: {initNodes: 3, pods: 7}",
    )
    nodes, pods = case.operations()
    assert isinstance(nodes, CreateNodes)
    assert isinstance(pods, CreatePods)
    assert (nodes.count, pods.count) == (3, 7)


def test_a_set_of_pods_becomes_one_operation_for_each_namespace(tmp_path: Path):
    case = a_case(
        tmp_path,
        "- opcode: createPodSets\n  countParam: $sets\n  namespacePrefix: init\n"
        "  createPodsOp: {opcode: createPods, countParam: $pods, collectMetrics: true}",
        workload="params: {sets: 2, pods: 4}",
    )
    assert [(each.namespace, each.count) for each in case.operations() if isinstance(each, CreatePods)] == [
        ("init-0", 4),
        ("init-1", 4),
    ]


WRONG_PARAMETERS = {
    "a parameter that the workload lacks": ("{}", "parameter pods is undefined"),
    "a parameter of another type": ("{pods: many}", "parameter pods must be a whole number, got 'many'"),
    "a parameter that no operation uses": ("{pods: 1, other: 2}", "parameters that no operation uses: other"),
    "a negative count": ("{pods: -1}", "count must not be negative"),
}


@pytest.mark.parametrize(("parameters", "message"), WRONG_PARAMETERS.values(), ids=WRONG_PARAMETERS.keys())
def test_parameters_that_do_not_fit_are_found_before_anything_starts(tmp_path: Path, parameters: str, message: str):
    case = a_case(
        tmp_path, "- {opcode: createPods, countParam: $pods, collectMetrics: true}", workload=f"params: {parameters}"
    )
    with pytest.raises(WorkloadError, match=message):
        case.operations()


WRONG_FILES = {
    "an opcode that is not known": ("- {opcode: explode}", "explode"),
    "a field that is not known": ("- {opcode: createPods, number: 3}", "number"),
    "metrics of pods that are not waited for": (
        "- {opcode: createPods, count: 1, collectMetrics: true, skipWaitToCompletion: true}",
        "cannot be true at the same time",
    ),
    "nothing is measured": ("- {opcode: createNodes, count: 1}", "no operation that collects metrics"),
    "a churn that recreates nothing": (f"{MEASURED}\n- {{opcode: churn, mode: recreate, templatePaths: []}}", "number"),
}


@pytest.mark.parametrize(("operations", "message"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_a_wrong_file_is_the_operators_mistake(tmp_path: Path, operations: str, message: str):
    with pytest.raises(OperatorMistake, match=message):
        a_case(tmp_path, operations)


def test_gates_of_the_workload_win_over_those_of_the_test_case(tmp_path: Path):
    case = a_case(tmp_path, MEASURED, test_case="featureGates: {A: true, B: true}", workload="featureGates: {B: false}")
    assert case.feature_gates == {"A": True, "B": False}


THRESHOLDS = {
    "a number holds for every topic": ("270", 270),
    "a mapping holds for the topics that it names": ("{misc: 40, dra: 50}", 40),
    "another topic has none": ("{dra: 50}", 0),
}


@pytest.mark.parametrize(("stated", "threshold"), THRESHOLDS.values(), ids=THRESHOLDS.keys())
def test_the_threshold_of_a_topic(tmp_path: Path, stated: str, threshold: float):
    assert a_case(tmp_path, MEASURED, workload=f"threshold: {stated}").threshold == threshold


def test_names_and_topics_are_upstreams(tmp_path: Path):
    case = a_case(tmp_path, MEASURED)
    assert (case.name, case.topic) == ("misc/Some/small", "misc")
