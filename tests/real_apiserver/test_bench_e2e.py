"""`mooring bench e2e` with the real programs: few nodes, few pods, every contender."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.real_apiserver.control_plane import debian_program
from tests.real_kubectl.conftest import real_program

MANY = 300
"""Of few pods a fast contender binds all before the watch shows the first: then there is no rate."""


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
    report = bench_e2e("--nodes=10", f"--pods={MANY}", "--workload=gangs", "--no-bare", "--rounds=2")
    bound = [(run["contender"], run["bound"]) for run in report["runs"]]
    assert bound == [("mooring", MANY), ("kube-scheduler", MANY)] * 2
    assert all(run["gangs_per_second"] > 0 and run["events"] == MANY for run in report["runs"])


def test_schedulers_are_compared_with_the_bare_bind_rate():
    """All contenders bind all pods, and every event of the schedulers is there."""
    report = bench_e2e("--nodes=10", f"--pods={MANY}")
    runs = {run["contender"]: run for run in report["runs"]}
    assert set(runs) == {"bare", "mooring", "kube-scheduler"}
    assert all(run["bound"] == MANY and run["pods_per_second"] > 0 for run in runs.values())
    assert runs["mooring"]["events"] == runs["kube-scheduler"]["events"] == MANY
    assert {each["contender"] for each in report["summaries"] if each["share_of_bare"] is not None} == set(runs)
