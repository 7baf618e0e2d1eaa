"""`mooring simulate` from files to tables, JSON and CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Mooring

TRACE = "arrival,duration,cpu,memory\n0,100,3,1Gi\n0,50,3,1Gi\n10,,3,1Gi\n20,,9,1Gi\n"
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def test_a_trace_is_simulated_with_the_default_profile(mooring: Mooring, trace: Path):
    result = mooring("simulate", "--nodes=2", f"--workload={trace}")
    assert result.code == 0
    rows = dict(line.rsplit("  ", 1) for line in map(str.strip, result.out.splitlines()) if "  " in line)
    assert {label.strip(): value for label, value in rows.items()}["bound"] == "3"
    assert "2 Insufficient cpu" in result.out


def test_json_has_every_pod(mooring: Mooring, trace: Path):
    result = mooring("simulate", "--nodes=2", f"--workload={trace}", "--json")
    outcome = json.loads(result.out)["default"]
    assert outcome["summary"]["bound"] == 3
    assert [pod["bound_at"] for pod in outcome["pods"]] == [0.0, 0.0, 50.0, None]
    assert outcome["summary"]["waited_max"] == 40.0
    assert mooring("simulate", "--nodes=2", f"--workload={trace}", "-o", "json").out == result.out


def test_configurations_are_compared(mooring: Mooring, trace: Path, tmp_path: Path):
    packing = tmp_path / "packing.yaml"
    packing.write_text(PACKING)
    default = tmp_path / "default.yaml"
    default.write_text(PACKING.split("profiles")[0])
    small = tmp_path / "small.csv"
    small.write_text("arrival,cpu\n0,1\n1,1\n")
    pods = tmp_path / "pods.csv"
    result = mooring(
        "simulate", "--nodes=2", f"--workload={small}", f"--config={default}", f"--config={packing}", f"--pods={pods}"
    )
    assert f"On another node with {packing} than with {default}: 1 of 2 pods" in result.out
    rows = list(csv.DictReader(pods.read_text().splitlines()))
    assert [(row["configuration"], row["name"]) for row in rows] == [
        (str(path), pod) for path in (default, packing) for pod in ("pod-1", "pod-2")
    ]


def test_manifests_are_a_workload(mooring: Mooring, tmp_path: Path):
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: nginx}]}\n"
    )
    result = mooring("simulate", f"--workload={manifest}", "--json")
    assert [pod["name"] for pod in json.loads(result.out)["default"]["pods"]] == ["web"]


MISTAKES = {
    "a workload that is not there": (["--workload=missing.csv"], "missing.csv cannot be read"),
    "a column that is no pair": (["--workload={trace}", "--column=arrival"], "must be NAME=COLUMN"),
    "a column that is not there": (["--workload={trace}", "--column=arrival=start"], 'no column "start"'),
    "nodes and a file": (["--workload={trace}", "--nodes=1", "--cluster=c.yaml"], "exclude each other"),
    "no workload": ([], "--workload"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_explained(mooring: Mooring, trace: Path, arguments: list[str], message: str):
    result = mooring("simulate", *(argument.format(trace=trace) for argument in arguments))
    assert result.code == 2
    assert message in result.err
