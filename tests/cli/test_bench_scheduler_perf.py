"""`mooring bench scheduler-perf` lists workloads and reports mistakes without starting anything."""

from __future__ import annotations

from pathlib import Path

from tests.bench.scheduler_perf.cases import a_case
from tests.cli.conftest import Mooring

MEASURED = "- {opcode: createPods, count: 5, collectMetrics: true}"


def test_the_list_has_every_workload_and_why_one_cannot_run(mooring: Mooring, tmp_path: Path):
    case = a_case(tmp_path, MEASURED, workload="threshold: 30\nfeatureGates: {SchedulerQueueingHints: false}")
    result = mooring("bench", "scheduler-perf", "--list", "--labels=", f"--config={case.file}")
    assert result.code == 0
    assert "misc/Some/small" in result.out
    assert "30" in result.out
    assert "feature gate SchedulerQueueingHints is locked to true" in " ".join(result.out.split())


def test_only_workloads_of_the_performance_job_are_chosen_by_default(mooring: Mooring, tmp_path: Path):
    case = a_case(tmp_path, MEASURED)
    assert "0 workloads" in mooring("bench", "scheduler-perf", "--list", f"--config={case.file}").out


def test_a_scheduler_that_is_not_known_is_a_mistake(mooring: Mooring, tmp_path: Path):
    case = a_case(tmp_path, MEASURED)
    result = mooring("bench", "scheduler-perf", f"--config={case.file}", "--scheduler=mine")
    assert result.code == 2
    assert "NAME=COMMAND" in result.err


def test_a_folder_without_workload_files_is_a_mistake(mooring: Mooring, tmp_path: Path):
    result = mooring("bench", "scheduler-perf", "--list", f"--config={tmp_path}")
    assert result.code == 2
    assert "has no performance-config.yaml" in result.err
