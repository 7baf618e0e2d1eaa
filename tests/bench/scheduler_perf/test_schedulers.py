"""The configuration of schedulers and the flags of the API server."""

from __future__ import annotations

from pathlib import Path

from tests.bench.scheduler_perf.cases import a_case

from mooring.bench.scheduler_perf.running import server_flags
from mooring.bench.scheduler_perf.schedulers import configuration

MEASURED = "- {opcode: createPods, count: 5, collectMetrics: true}"


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
