"""`mooring explain` of a pod of a group: in a file, and on an API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

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
