"""`mooring bench e2e`: wrong input is refused before anything starts; a given cluster is used and left as it was.

The embedded API server takes the place of a real one here; tests/real_apiserver has the real programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Mooring

from mooring.apiserver.discovery import KUBERNETES_VERSION
from mooring.bench.apiserver import ServerAddress, server

MISTAKES = {
    "a workload that is not there": (
        ["--workload=spraed"],
        'there is no workload "spraed". Did you mean "spread"?',
    ),
    "a workload whose pods are not bound": (
        ["--workload=refused"],
        '"refused" cannot be measured end to end: not all its pods are bound',
    ),
    "a workload that leaves objects in a given cluster": (
        ["--workload=volumes", "--kubeconfig=x"],
        '"volumes" creates objects that cannot be removed from a cluster',
    ),
    "a workload that needs feature gates of a given cluster": (
        ["--workload=gangs", "--kubeconfig=x"],
        '"gangs" needs feature gates of the API server (GenericWorkload, GangScheduling)',
    ),
    "a scheduler that is not there": (["--scheduler=moring"], 'Did you mean "mooring"?'),
    "two backgrounds": (["--unschedulable=5", "--preemption-wave=5"], "measured one after the other: give one"),
    "updates of nodes alone": (["--node-updates=5"], "--node-updates belongs to --unschedulable"),
    "a wave with a workload": (["--preemption-wave=5", "--workload=basic"], "without --workload and --running"),
    "a wave without room": (["--preemption-wave=5", "--nodes=4"], "--nodes must be at least 5"),
    "a picture nowhere": (["--svg=missing/x.svg"], "the folder missing of missing/x.svg does not exist"),
    "a kubeconfig that is not there": (["--kubeconfig=missing", "--scheduler=mooring"], "missing"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_wrong_input_is_refused(mooring: Mooring, arguments: list[str], message: str):
    result = mooring("bench", "e2e", *arguments)
    assert result.code == 2
    assert message in result.err


def test_a_missing_kubeconfig_is_reported_before_any_progress(mooring: Mooring):
    result = mooring("bench", "e2e", "--kubeconfig=missing", "--scheduler=mooring", "--no-bare")
    assert result.code == 2
    assert result.err.startswith("Error: ")
    assert "are created" not in result.err


def test_missing_programs_are_named_with_what_gets_them(mooring: Mooring, monkeypatch, tmp_path):
    monkeypatch.setenv("MOORING_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    result = mooring("bench", "e2e", "--scheduler=mooring")
    assert result.code == 2
    assert "2 of them are missing" in result.err
    assert "scripts/install-debian etcd" in result.err
    assert f"{tmp_path}/bin/{KUBERNETES_VERSION}/kube-apiserver" in result.err


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of an embedded API server in another process."""
    with server() as (address, _line):
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(_kubeconfig(address, tmp_path)))
        yield path


def _kubeconfig(address: ServerAddress, folder: Path) -> object:
    ca = folder / "ca.pem"
    ca.write_text(address.ca_pem)
    cluster = {"server": address.url, "certificate-authority": str(ca)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": address.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }


def measured(mooring: Mooring, kubeconfig: Path, *arguments: str):
    command = ("bench", "e2e", f"--kubeconfig={kubeconfig}", "--scheduler=mooring", "--rounds=1", "--nodes=3")
    return mooring(*command, *arguments)


def test_a_given_cluster_is_used_and_left_empty(mooring: Mooring, kubeconfig: Path, tmp_path: Path):
    picture = tmp_path / "picture.svg"
    result = measured(mooring, kubeconfig, "--pods=6", "--running=2", "--json", f"--svg={picture}")
    assert result.code == 0, result.err
    runs = {run["contender"]: run for run in json.loads(result.out)["runs"]}
    assert {name: (run["bound"], run["events"]) for name, run in runs.items()} == {"bare": (6, None), "mooring": (6, 6)}
    assert "[2/2] basic, round 1 of 1: mooring:" in result.err
    assert picture.read_text().startswith("<svg")
    # Nothing is left that a second run would refuse or find.
    again = measured(mooring, kubeconfig, "--pods=6", "--no-bare")
    assert again.code == 0, again.err
    assert again.out.splitlines()[3].split()[:2] == ["basic", "mooring"]


def test_pods_arrive_while_others_fit_nowhere(mooring: Mooring, kubeconfig: Path):
    result = measured(mooring, kubeconfig, "--unschedulable=3", "--pods=6", "--rate=50", "--json")
    assert result.code == 0, result.err
    (run,) = json.loads(result.out)["runs"]
    assert (run["scenario"], run["bound"]) == ("50/s, 3 unschedulable, 20 node updates/s", 6)
    assert 0 < run["latency"]["p50"] <= run["latency"]["p99"]


def test_a_wave_of_preemptions_is_bound_too(mooring: Mooring, kubeconfig: Path):
    result = measured(mooring, kubeconfig, "--preemption-wave=1", "--pods=6", "--rate=50", "--json")
    assert result.code == 0, result.err
    (run,) = json.loads(result.out)["runs"]
    assert (run["bound"], run["running"]) == (6, 12)
    assert run["others_bound_seconds"] > 0


def test_a_cluster_with_nodes_of_its_own_is_refused(mooring: Mooring, kubeconfig: Path):
    import asyncio

    from mooring.client import ApiClient, load_kubeconfig
    from mooring.objects import Node

    async def create() -> None:
        async with ApiClient(load_kubeconfig([kubeconfig])) as client:
            await client.create(Node.KIND, {"metadata": {"name": "precious"}})

    asyncio.run(create())
    result = measured(mooring, kubeconfig, "--pods=6")
    assert result.code == 2
    assert "has nodes that are not the benchmark's: precious." in result.err


def test_a_scheduler_that_ends_is_reported_with_its_log(mooring: Mooring, kubeconfig: Path):
    scheduler = "--scheduler=broken=sh -c 'echo no such flag; exit 7'"
    command = ("bench", "e2e", f"--kubeconfig={kubeconfig}", "--rounds=1", "--nodes=3", "--pods=6", "--no-bare")
    result = mooring(*command, scheduler)
    assert result.code == 1
    assert "it ended with exit code 7." in result.err
    assert "no such flag" in result.err
    assert result.out.splitlines()[3].split()[-1] == "6"
