"""`mooring bench scheduler-perf` runs a small workload with both schedulers against a real API server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.bench.scheduler_perf.cases import a_case
from tests.real_apiserver.control_plane import debian_program
from tests.real_kubectl.conftest import real_program

OPERATIONS = """
- {opcode: createNodes, countParam: $nodes}
- {opcode: createPods, count: 5}
- {opcode: churn, mode: create, number: 2, intervalMilliseconds: 100, templatePaths: [pod.yaml]}
- {opcode: createPods, countParam: $pods, collectMetrics: true}
"""


def test_both_schedulers_place_the_pods_of_a_workload(tmp_path: Path):
    debian_program("etcd"), real_program("kube-apiserver"), real_program("kube-scheduler")  # or the test is skipped
    case = a_case(tmp_path, OPERATIONS, workload="params: {nodes: 5, pods: 20}")
    arguments = ["bench", "scheduler-perf", "--json", "--labels=", f"--config={case.file}"]
    done = subprocess.run([sys.executable, "-m", "mooring", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(run["scheduler"], run["pods"], run["error"]) for run in runs] == [
        ("mooring", 20, ""),
        ("kube-scheduler", 20, ""),
    ]
    for run in runs:
        metrics = {item["labels"]["Metric"] for item in run["items"]}
        assert {"scheduler_scheduling_attempt_duration_seconds", "SchedulingThroughput"} <= metrics
        assert run["cpuSeconds"] > 0
