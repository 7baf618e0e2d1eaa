"""`mooring bench e2e` with the real programs: few nodes, few pods, every contender."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.real_apiserver.control_plane import debian_program
from tests.real_kubectl.conftest import real_program


def bench_e2e(*arguments: str) -> dict[str, Any]:
    debian_program("etcd"), real_program("kube-apiserver"), real_program("kube-scheduler")  # or the test is skipped
    command = [sys.executable, "-m", "mooring", "bench", "e2e", "--rounds=1", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_wave_of_preemptions_is_bound_while_pods_arrive():
    report = bench_e2e("--nodes=5", "--preemption-wave=2", "--pods=20", "--rate=20")
    runs = {run["contender"]: run for run in report["runs"]}
    assert set(runs) == {"mooring", "kube-scheduler"}
    assert all(run["bound"] == 20 and run["others_bound_seconds"] > 0 for run in runs.values())


def test_gangs_are_bound_whole_by_schedulers_with_their_feature_gates_on():
    """In the second round groups and pods of the first are gone: new ones are created under the same names."""
    report = bench_e2e("--nodes=5", "--pods=30", "--workload=gangs", "--no-bare", "--rounds=2")
    assert [(run["contender"], run["bound"]) for run in report["runs"]] == [("mooring", 30), ("kube-scheduler", 30)] * 2
    assert all(run["gangs_per_second"] > 0 and run["events"] == 30 for run in report["runs"])


def test_schedulers_are_compared_with_the_bare_bind_rate():
    """All contenders bind all pods, and every event of the schedulers is there."""
    report = bench_e2e("--nodes=5", "--pods=20")
    runs = {run["contender"]: run for run in report["runs"]}
    assert set(runs) == {"bare", "mooring", "kube-scheduler"}
    assert all(run["bound"] == 20 and run["pods_per_second"] > 0 for run in runs.values())
    assert runs["mooring"]["events"] == runs["kube-scheduler"]["events"] == 20
    assert {each["contender"] for each in report["summaries"] if each["share_of_bare"] is not None} == set(runs)
