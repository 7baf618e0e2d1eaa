"""`mooring explain` of a pod of a group: in a file, and on an API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml
from tests.cli.conftest import Mooring
from tests.cli.programs import Program

from mooring.apiserver import EmbeddedApiServer

NODE = """
apiVersion: v1
kind: Node
metadata: {name: one}
"""
GROUP = """
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: training}
spec: {schedulingPolicy: {gang: {minCount: 4}}}
"""
WORKER = """
---
apiVersion: v1
kind: Pod
metadata: {name: worker-%d}
spec: {schedulingGroup: {podGroupName: training}, containers: [{name: c, image: i}]}
"""


def test_a_member_of_an_incomplete_gang_in_a_file(mooring: Mooring, tmp_path: Path):
    file = tmp_path / "gang.yaml"
    file.write_text(NODE + GROUP + "".join(WORKER % at for at in range(3)), encoding="utf-8")
    result = mooring("explain", "worker-0", f"--cluster={file}")
    assert (result.code, result.err) == (0, "")
    assert "  It waits for gang training: 3 of 4 members exist." in result.out.splitlines()


def test_a_group_that_does_not_exist_is_named(mooring: Mooring, tmp_path: Path):
    file = tmp_path / "gang.yaml"
    file.write_text(NODE + WORKER % 0, encoding="utf-8")
    result = mooring("explain", "worker-0", f"--cluster={file}")
    assert "  It waits for PodGroup training, which does not exist." in result.out.splitlines()


async def test_a_member_of_an_incomplete_gang_on_a_server(home: Path):
    server = EmbeddedApiServer(features=["GenericWorkload", "GangScheduling"])
    spec = {"schedulingPolicy": {"gang": {"minCount": 4}}}
    server.store.create(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "training"},
            "spec": spec,
        }
    )
    for at in range(3):
        member = {"schedulingGroup": {"podGroupName": "training"}, "containers": [{"name": "c", "image": "i"}]}
        server.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"worker-{at}"}, "spec": member})
    await server.start()
    server.write_kubeconfig(home / "k")
    with Program("explain", "worker-0", "--kubeconfig=k", home=home) as program:
        await asyncio.to_thread(program.ended)
    await server.stop()
    assert "  It waits for gang training: 3 of 4 members exist." in program.out


async def test_a_member_is_decided_again_with_the_gates_of_the_scheduler(home: Path):
    """The command line need not repeat them."""
    server = EmbeddedApiServer(features=["GenericWorkload", "GangScheduling"])
    for document in yaml.safe_load_all(NODE + GROUP + "".join(WORKER % at for at in range(4))):
        document.setdefault("apiVersion", "v1")
        server.store.create(document)
    await server.start()
    server.write_kubeconfig(home / "k")
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    with Program("run", "--kubeconfig=k", "--leader-elect=false", gates, home=home) as scheduler:
        await asyncio.to_thread(scheduler.ready)
        with Program("explain", "worker-0", "--kubeconfig=k", home=home) as program:
            await asyncio.to_thread(program.ended)
        with Program("why-not", "worker-0", "one", "--kubeconfig=k", home=home) as other:
            await asyncio.to_thread(other.ended)
        await asyncio.to_thread(scheduler.end)
    await server.stop()
    text = "\n".join(program.out)
    assert "Recomputed with profile default-scheduler on the cluster" in text
    assert "It was not decided again" not in text
    assert "feature-gates" not in "\n".join([*other.out, *other.err])
