"""`mooring trace import`: from files of a published trace to a workload and a cluster file that can be simulated."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Mooring

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-a,1000,1024,1,500\npod-b,2000,1024,0,0\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-a,4000,8192,1,T4\n"


@pytest.fixture
def openb(tmp_path: Path) -> Path:
    folder = tmp_path / "openb"
    folder.mkdir()
    (folder / "openb_pod_list.csv").write_text(PODS)
    (folder / "openb_node_list.csv").write_text(NODES)
    return folder


def test_an_imported_trace_is_simulated(mooring: Mooring, openb: Path, tmp_path: Path):
    workload, cluster = tmp_path / "workload.csv", tmp_path / "cluster.yaml"
    result = mooring("trace", "import", "openb", str(openb), "-o", str(workload), f"--cluster-out={cluster}")
    assert result.code == 0
    assert f"{workload} has 2 pods." in result.out
    assert f"{cluster} has 1 nodes." in result.out
    assert "run for ever" in result.out
    simulated = mooring("simulate", f"--cluster={cluster}", f"--workload={workload}", "--json")
    assert '"bound": 2' in simulated.out


def test_a_bad_row_leaves_no_file(mooring: Mooring, openb: Path, tmp_path: Path):
    (openb / "openb_pod_list.csv").write_text(PODS + "pod-c,x,1,0,0\n")
    result = mooring("trace", "import", "openb", str(openb), "-o", str(tmp_path / "workload.csv"))
    assert result.code == 2
    assert 'column "cpu_milli" (line 4)' in result.err
    assert not (tmp_path / "workload.csv").exists()


def test_a_cluster_needs_the_list_of_nodes(mooring: Mooring, openb: Path, tmp_path: Path):
    pods = openb / "openb_pod_list.csv"
    result = mooring("trace", "import", "openb", str(pods), "-o", str(tmp_path / "w.csv"), "--cluster-out=c.yaml")
    assert result.code == 2
    assert "--cluster-out needs the file that lists the nodes" in result.err
    assert not (tmp_path / "w.csv").exists()


GENERATED = "apiVersion: mooring.dev/v1alpha1\nkind: GeneratedWorkload\npods: 20\nseed: 3\n"


def test_a_generated_workload_is_written(mooring: Mooring, tmp_path: Path):
    (tmp_path / "workload.yaml").write_text(GENERATED)
    for name in ("a.csv", "b.csv"):
        result = mooring("trace", "generate", str(tmp_path / "workload.yaml"), "-o", str(tmp_path / name))
        assert (result.code, result.out) == (0, f"{tmp_path / name} has 20 pods.\n")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_file_without_a_generated_workload_is_refused(mooring: Mooring, tmp_path: Path):
    (tmp_path / "workload.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n")
    result = mooring("trace", "generate", str(tmp_path / "workload.yaml"), "-o", str(tmp_path / "w.csv"))
    assert (result.code, "has no GeneratedWorkload" in result.err) == (2, True)


def test_pods_are_generated_by_flags(mooring: Mooring):
    first = mooring("simulate", "--nodes=10", "--generate-pods=20", "--seed=3", "--json")
    second = mooring("simulate", "--nodes=10", "--generate-pods=20", "--seed=3", "--json")
    assert '"bound": 20' in first.out
    assert first.out == second.out


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "either by --workload FILE or by --generate-pods N"),
        (["--generate-pods=1", "--workload=x.csv"], "--workload and --generate-pods exclude each other"),
        (["--workload=x.csv", "--seed=1"], "--seed is about --generate-pods"),
        (["--generate-pods=1", "--column=cpu=x"], "--column is about the trace"),
    ],
)
def test_flags_that_contradict_each_other(mooring: Mooring, flags: list[str], why: str):
    result = mooring("simulate", *flags)
    assert result.code == 2
    assert why in result.err
