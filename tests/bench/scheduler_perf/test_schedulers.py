"""Commands of schedulers, their configuration, and the flags of the API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.scheduler_perf.cases import a_case

from mooring.base.errors import OperatorMistake
from mooring.bench.scheduler_perf.running import server_flags
from mooring.bench.scheduler_perf.schedulers import SchedulerCommand, configuration, read_commands

MEASURED = "- {opcode: createPods, count: 5, collectMetrics: true}"


def test_mooring_is_known_by_name_and_others_by_their_command():
    ours, other = read_commands(["mooring", "mine=/opt/mine --config={config}"])
    assert ours.is_mooring
    assert "mooring run" in ours.command
    assert not other.is_mooring
    assert other.words({"config": "/c.yaml"}) == ["/opt/mine", "--config=/c.yaml"]


def test_a_name_without_a_command_is_reported():
    with pytest.raises(OperatorMistake, match="must be mooring, kube-scheduler or NAME=COMMAND"):
        read_commands(["mine"])


def test_a_field_that_is_not_known_is_reported():
    with pytest.raises(OperatorMistake, match=r"the fields are \{config\}"):
        SchedulerCommand("mine", "mine {colour}").words({"config": "x"})


def test_the_configuration_of_the_test_case_is_used_without_leader_election(tmp_path: Path):
    case = a_case(tmp_path, MEASURED, test_case="schedulerConfigPath: scheduler.yaml")
    text = "kind: KubeSchedulerConfiguration\nparallelism: 3\nleaderElection: {leaderElect: true}"
    (case.file.parent / "scheduler.yaml").write_text(text, encoding="utf-8")
    found = configuration(case, Path("/kubeconfig"))
    assert (found["parallelism"], found["leaderElection"]) == (3, {"leaderElect": False})


def test_gates_reach_the_api_server_and_devices_need_their_api_versions(tmp_path: Path):
    flags = server_flags(a_case(tmp_path, MEASURED, workload="featureGates: {DynamicResourceAllocation: true}"))
    assert "--feature-gates=DynamicResourceAllocation=true" in flags
    assert any("resource.k8s.io/v1beta1=true" in flag for flag in flags)
    assert server_flags(a_case(tmp_path, MEASURED)) == ["--disable-admission-plugins=Priority"]
