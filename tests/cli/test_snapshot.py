"""`mooring snapshot` as a user calls it: from a cluster to a file, and back to a cluster with the same placements."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import NOWHERE, Mooring, write
from tests.cli.programs import Program, clean_environment, private_home

from mooring.apiserver import EmbeddedApiServer
from mooring.cli.cluster import load_file
from mooring.objects import Node, Pod
from mooring.snapshots import Header, LeftOut, Spool, read_snapshot, write_snapshot

CLUSTER = """\
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 3
labels: {team: payments}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: nginx, env: [{name: TOKEN, value: hunter2}], resources: {requests: {cpu: 500m}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: agent}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: too-big, namespace: shop}
spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: "64"}}}]}
"""
PODS = 4 + 2 + 3 + 1


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an embedded cluster with a scheduler, whose pods run but for one that fits nowhere."""
    folder = tmp_path_factory.mktemp("up")
    (folder / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    with private_home() as home, a_cluster(folder, "cluster.yaml", home) as program:
        bound = "Successfully bound pod to node"
        program.until_line(lambda _: sum(bound in line for line in program.err) >= PODS - 1, what="all pods bound")
        program.mentions("Unable to schedule pod")
        yield folder / "it.kubeconfig"


def a_cluster(folder: Path, cluster: str, home: Path) -> Program:
    return Program("up", "--cluster", cluster, "--write-kubeconfig", "it.kubeconfig", "-v", "2", home=home, cwd=folder)


def placements(path: Path | str) -> dict[str, str]:
    return {pod.key: pod.spec.node_name for pod in read_snapshot(path).objects(Pod)}


def test_a_snapshot_is_taken_restored_and_the_same(up: Path, mooring: Mooring, tmp_path: Path, home: Path):
    result = mooring("snapshot", "it.snapshot", "--kubeconfig", str(up))
    assert (result.code, result.err.splitlines()[0][:7]) == (0, "Listing")
    assert "       10  pods\n" in result.out
    assert "objects of Kubernetes v1.36.4+mooring in it.snapshot (" in result.out
    before = placements("it.snapshot")
    assert len(before) == PODS
    assert before["shop/too-big"] == ""
    with a_cluster(tmp_path, "it.snapshot", home) as program:
        program.mentions("Unable to schedule pod")
        again = mooring("snapshot", "again.snapshot", "--kubeconfig", "it.kubeconfig")
    assert again.code == 0, again.err
    assert placements("again.snapshot") == before


def test_an_anonymized_snapshot_is_restored_alike(up: Path, mooring: Mooring, tmp_path: Path, home: Path):
    assert mooring("snapshot", "plain", "--kubeconfig", str(up)).code == 0
    result = mooring("snapshot", "hidden", "--from", "plain", "--anonymize")
    assert result.code == 0, result.err
    assert "(anonymized, " in result.out
    hidden = read_snapshot("hidden")
    assert hidden.header.anonymized
    assert hidden.header.counts == read_snapshot("plain").header.counts
    text = json.dumps(list(hidden.documents()))
    assert [word for word in ("hunter2", "shop", "payments", "too-big", "nginx", "node-1") if word in text] == []
    before = placements("hidden")
    nodes = [node.name for node in hidden.objects(Node)]
    assert sorted(map(nodes.index, filter(None, before.values()))) == sorted(
        [node.name for node in read_snapshot("plain").objects(Node)].index(name)
        for name in filter(None, placements("plain").values())
    )
    with a_cluster(tmp_path, "hidden", home) as program:
        program.mentions("Unable to schedule pod")
        assert mooring("snapshot", "again", "--kubeconfig", "it.kubeconfig").code == 0
    assert placements("again") == before


RACKS = """
from mooring.framework import CustomResource, Objects, Plugin


class Rack(CustomResource, group="example.com", version="v1", plural="racks"):
    height: int = 0


class Racks(Plugin):
    def __init__(self, racks: Objects[Rack]) -> None: ...

    def pre_enqueue(self, pod): ...
"""


def test_custom_kinds_of_plugins_are_listed_too(up: Path, mooring: Mooring):
    result = mooring("snapshot", "it", "--kubeconfig", str(up), "--plugins", write("racks.py", RACKS))
    assert result.code == 0, result.err
    assert "        -  racks.example.com: not served, left out\n" in result.out


def test_the_name_of_the_file_may_be_left_out(up: Path, mooring: Mooring):
    result = mooring("snapshot", "--kubeconfig", str(up), "--anonymize")
    assert result.code == 0, result.err
    [name] = [each for each in os.listdir() if each.endswith(".snapshot")]
    assert name in result.out
    assert read_snapshot(name).header.anonymized


def test_a_file_is_replaced_only_by_force(up: Path, mooring: Mooring):
    write("it.snapshot", "mine")
    refused = mooring("snapshot", "it.snapshot", "--kubeconfig", str(up))
    assert (refused.code, Path("it.snapshot").read_text()) == (2, "mine")
    assert "it.snapshot exists already; name another file, or replace it with --force" in refused.err
    assert mooring("snapshot", "it.snapshot", "--kubeconfig", str(up), "--force").code == 0
    assert read_snapshot("it.snapshot").header.objects


def test_an_unreachable_cluster_leaves_nothing(mooring: Mooring):
    result = mooring("snapshot", "it.snapshot", "--kubeconfig", write("kubeconfig", NOWHERE))
    assert result.code == 1
    assert "127.0.0.1:1" in result.err
    assert os.listdir() == ["kubeconfig"]


def test_a_full_disk_leaves_nothing(up: Path, mooring: Mooring, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Spool, "add", full)
    result = mooring("snapshot", "it.snapshot", "--kubeconfig", str(up))
    assert result.code == 2
    assert "Error: it.snapshot cannot be written: No space left on device." in result.err
    assert os.listdir() == []


def test_a_snapshot_on_the_standard_output_is_that_alone(up: Path, home: Path, tmp_path: Path):
    with (tmp_path / "it").open("wb") as file:
        command = [sys.executable, "-m", "mooring", "snapshot", "-", "--kubeconfig", str(up)]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, env=clean_environment(home), check=True)
    assert read_snapshot(tmp_path / "it").header.counts["pods"] == PODS
    assert len(list(read_snapshot(tmp_path / "it").documents())) == read_snapshot(tmp_path / "it").header.objects
    assert b"in the standard output" in done.stderr


REFUSED = {
    "a folder": (["."], ". is a folder"),
    "a folder that is not there": (["gone/it"], "the folder gone of gone/it does not exist"),
    "--from without --anonymize": (["it", "--from", "x"], "--from and --keep-label are for --anonymize."),
    "--from and a cluster": (["it", "--from", "x", "--anonymize", "--context", "y"], "--from reads a file"),
    "--from what is not there": (["it", "--from", "x", "--anonymize"], "The snapshot x cannot be read: No such file"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(mooring: Mooring, arguments: list[str], message: str):
    result = mooring("snapshot", *arguments)
    assert result.code == 2
    assert message in result.err
    assert os.listdir() == []


def test_what_was_left_out_is_named_where_it_is_restored(capfd: pytest.CaptureFixture[str]):
    with Spool() as spool:
        spool.begin("nodes")
        spool.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}})
        left_out = [LeftOut("csinodes.storage.k8s.io", "forbidden")]
        left_out += [LeftOut("x" * 10_000, "y" * 10_000)] * 1_000
        spool.finish()
        write_snapshot("it", Header(taken_at="now", counts=dict(spool.counts), left_out=left_out), spool)
    load_file(server := EmbeddedApiServer(), "it")
    named = capfd.readouterr().err
    assert "Not in the snapshot: csinodes.storage.k8s.io (forbidden)," in named
    assert " and 951 more." in named
    assert len(named) < 20_000
    assert len(server.store.list("nodes")) == 1


def test_a_damaged_snapshot_starts_nothing(up: Path, mooring: Mooring):
    assert mooring("snapshot", "it", "--kubeconfig", str(up)).code == 0
    content = Path("it").read_bytes()
    Path("it").write_bytes(content[: len(content) // 2])
    result = mooring("cluster", "--cluster", "it")
    assert result.code == 2
    assert "The snapshot it is damaged at line" in result.err
