"""Reads upstream's workload files: test cases, their workloads, and the operations that a workload runs.

A file that cannot be read is an operator's mistake, with the field. A workload whose parameters do not fit its
operations is found here as well, before anything is started.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake, Problem
from mooring.bench.scheduler_perf.operations import (
    AnyOperation,
    Operation,
    Parameter,
    WorkloadError,
    measures,
    unrolled,
    with_parameters,
)

FILE_NAME = "performance-config.yaml"
FOLDER = Path("test", "integration", "scheduler_perf")
"""Where the files are in Kubernetes' repository and Go module."""
THROUGHPUT = "SchedulingThroughput"


class MetricSelector(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The value that a threshold is about."""

    name: str = THROUGHPUT
    labels: dict[str, str] = {}
    data_bucket: str = "Average"
    expect_lower: bool = False


class LabelValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    values: list[str]


class MetricsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Histograms of the scheduler to collect, and the label values that are distinguished."""

    metrics: dict[str, list[LabelValues] | None]


class Workload(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """One size of a test case."""

    name: str
    params: dict[str, Parameter] = {}
    labels: list[str] = []
    threshold: float | dict[str, float] = 0.0
    threshold_metric_selector: MetricSelector | None = None
    feature_gates: dict[str, bool] = {}


class TestCase(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Operations, and the workloads that run them with parameters of their own."""

    __test__ = False  # pytest looks at every class of this name

    name: str
    workload_template: list[AnyOperation]
    workloads: list[Workload]
    feature_gates: dict[str, bool] = {}
    metrics_collector_config: MetricsConfig | None = None
    scheduler_config_path: str = ""
    default_pod_template_path: str = ""
    labels: list[str] = []
    default_threshold_metric_selector: MetricSelector | None = None


@dataclass(frozen=True)
class Case:
    """One workload of one test case, ready to be planned."""

    file: Path
    topic: str
    test_case: TestCase
    workload: Workload

    @property
    def name(self) -> str:
        """`misc/SchedulingBasic/500Nodes`"""
        return f"{self.topic}/{self.test_case.name}/{self.workload.name}"

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(self.test_case.labels + self.workload.labels)

    @property
    def feature_gates(self) -> dict[str, bool]:
        return self.test_case.feature_gates | self.workload.feature_gates

    @property
    def threshold(self) -> float:
        """Zero: there is none."""
        stated = self.workload.threshold
        return stated.get(self.topic, 0.0) if isinstance(stated, dict) else stated

    @property
    def selector(self) -> MetricSelector:
        """What the threshold is about."""
        return (
            self.workload.threshold_metric_selector
            or self.test_case.default_threshold_metric_selector
            or MetricSelector()
        )

    def path(self, stated: str) -> Path:
        """A path in the file, which is relative to its folder."""
        return Path(os.path.normpath(self.file.parent / stated))

    def operations(self) -> list[Operation]:
        """The steps with this workload's parameters. Raises WorkloadError."""
        used: set[str] = set()
        steps = [
            step
            for operation in self.test_case.workload_template
            for step in unrolled(with_parameters(operation, self.workload.params, used))
        ]
        # A set of pods may name parameters inside, which are known once it is unrolled.
        steps = [with_parameters(step, self.workload.params, used) for step in steps]
        if unused := sorted(self.workload.params.keys() - used):
            raise WorkloadError(f"parameters that no operation uses: {', '.join(unused)}")
        return steps


def find_folder() -> Path:
    """The workload files of the newest Kubernetes module in Go's module cache."""
    cache = Path(os.environ.get("GOMODCACHE") or Path(os.environ.get("GOPATH") or Path.home() / "go") / "pkg" / "mod")
    found = [path / FOLDER for path in (cache / "k8s.io").glob("kubernetes@v*") if (path / FOLDER).is_dir()]
    if not found:
        message = (
            f"there is no k8s.io/kubernetes in {cache}. `go mod download k8s.io/kubernetes` in scripts/real gets it, "
            f"or name the files of a checkout with --config."
        )
        raise OperatorMistake("upstream's workload files were not found.", [Problem("--config", message)])
    return max(found, key=lambda path: _version(path.parents[2].name))


def _version(folder: str) -> list[int]:
    numbers = folder.partition("@v")[2].split("-")[0].split(".")
    return [int(number) if number.isdigit() else 0 for number in numbers]


def read_cases(paths: Sequence[Path]) -> list[Case]:
    """The workloads of these files, and of all files in these folders, in order."""
    return [case for path in paths for file, topic in _files(path) for case in read_file(file, topic)]


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    if not path.is_dir():
        yield path, _topic(path.absolute().parent, _root(path.absolute()))
        return
    found = sorted(path.rglob(FILE_NAME))
    if not found:
        raise OperatorMistake(f"{path} has no {FILE_NAME}.")
    for file in found:
        yield file, _topic(file.absolute().parent, _root(file.absolute()))


def _root(file: Path) -> Path:
    """The folder that holds the topics."""
    parents: Iterable[Path] = file.parents
    return next((each for each in parents if each.name == FOLDER.name), file.parent.parent)


def _topic(folder: Path, root: Path) -> str:
    """As upstream names the folder's benchmark: thresholds refer to it."""
    parts = [part.replace("_", "") for part in folder.relative_to(root).parts]
    return "_".join(parts)


def read_file(file: Path, topic: str) -> list[Case]:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise OperatorMistake(f"cannot read {file}: {error.strerror}") from error
    plain = read_tree(text, str(file)).plain()
    try:
        test_cases = msgspec.convert(plain, list[TestCase])
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        raise OperatorMistake.found_in(str(file), [Problem(place.strip("`$") or "the file", message)]) from error
    problems = list(_problems(test_cases))
    if problems:
        raise OperatorMistake.found_in(str(file), problems)
    return [Case(file, topic, test_case, workload) for test_case in test_cases for workload in test_case.workloads]


def _problems(test_cases: Sequence[TestCase]) -> Iterator[Problem]:
    if not test_cases:
        yield Problem("the file", "has no test cases")
    names: set[str] = set()
    for number, test_case in enumerate(test_cases):
        if test_case.name in names:
            yield Problem(f"[{number}].name", f'"{test_case.name}" is not unique')
        names.add(test_case.name)
        workloads = [workload.name for workload in test_case.workloads]
        if not workloads:
            yield Problem(f"[{number}].workloads", "has no workloads")
        if len(set(workloads)) < len(workloads):
            yield Problem(f"[{number}].workloads", "has names that are not unique")
        if not any(measures(operation) for operation in test_case.workload_template):
            yield Problem(f"[{number}].workloadTemplate", "has no operation that collects metrics")
