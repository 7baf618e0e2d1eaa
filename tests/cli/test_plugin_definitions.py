"""Custom kinds of plugins: `mooring up` installs them, `mooring run` names the command that does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home

from mooring.client import ApiClient, load_kubeconfig
from mooring.objects import Kind, Pod

DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: ByRack}]}}}]
"""
RACK = """
from mooring.framework import Cycle, NodeView, Objects, Plugin, Pod
from mooring.objects import CustomResource

class Rack(CustomResource, group="example.com", version="v1", plural="racks", scope="Cluster"):
    height: int = 0
    FIELD
MORE
class ByRack(Plugin):
    def __init__(self, racks: Objects[Rack]PARAMETERS) -> None:
        self._racks = racks

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0
"""
SHELF = """
class Shelf(CustomResource, group="example.com", version="v1", plural="shelves", scope="Cluster"):
    level: int = 0
"""
FIRST = RACK.replace("FIELD", "").replace("MORE", "").replace("PARAMETERS", "")
FILTERING = FIRST.replace("def score", "def filter").replace("-> int", "-> None").replace("return 0", "return None")
SECOND = (
    RACK.replace("FIELD", "depth: int = 0").replace("MORE", SHELF).replace("PARAMETERS", ", shelves: Objects[Shelf]")
)
BY_HAND = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.example.com, labels: {by: hand}}
spec:
  group: example.com
  scope: Cluster
  names: {plural: racks, singular: rack, kind: Rack}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
FLAGS = ("--config=s.yaml", "--plugins=racks.py")


def write(home: Path, **files: str) -> None:
    for name, text in files.items():
        (home / name.replace("__", ".")).write_text(text, encoding="utf-8")


@asynccontextmanager
async def up(home: Path, *flags: str) -> AsyncIterator[tuple[Program, ApiClient]]:
    with Program(
        "up", "--nodes=1" if "--cluster=c.yaml" not in flags else "-v=0", *FLAGS, *flags, home=home
    ) as program:
        await asyncio.to_thread(program.ready)
        async with ApiClient(load_kubeconfig([home / "mooring.kubeconfig"])) as client:
            yield program, client
        assert await asyncio.to_thread(program.end) == 0, program.written()


async def properties(client: ApiClient, name: str) -> set[str]:
    definition: dict[str, Any] = await client.get(DEFINITIONS, name)
    (version,) = definition["spec"]["versions"]
    return set(version["schema"]["openAPIV3Schema"]["properties"]) - {"apiVersion", "kind", "metadata"}


async def test_up_installs_the_kinds_of_its_plugins_and_follows_their_classes():
    with private_home() as home:
        write(home, s__yaml=CONFIG, racks__py=FIRST)
        async with up(home, "--watch-config", "--reload-plugins", "-v=2") as (program, client):
            assert "Installed the definition of racks.example.com, which ByRack reads." in program.out
            assert await properties(client, "racks.example.com") == {"height"}
            await create_pod(client, "web")
            await asyncio.to_thread(program.mentions, '"Successfully bound pod to node"')

            write(home, racks__py=SECOND)
            await asyncio.to_thread(program.mentions, '"Configuration reloaded" version=2')
            # Another stream than the log's: its lines may be read a moment later.
            await asyncio.to_thread(
                program.mentions, "Updated the definition of racks.example.com, which ByRack reads."
            )
            await asyncio.to_thread(
                program.mentions, "Installed the definition of shelves.example.com, which ByRack reads."
            )
            assert await properties(client, "racks.example.com") == {"height", "depth"}
            assert await properties(client, "shelves.example.com") == {"level"}


async def test_a_definition_of_the_cluster_file_stays_as_it_is():
    with private_home() as home:
        write(home, s__yaml=CONFIG, racks__py=FIRST, c__yaml=BY_HAND)
        async with up(home, "--cluster=c.yaml") as (program, client):
            assert (await client.get(DEFINITIONS, "racks.example.com"))["metadata"]["labels"] == {"by": "hand"}
            assert "definition of" not in program.written()


async def test_a_class_that_cannot_be_a_definition_is_named():
    with private_home() as home:
        write(home, s__yaml=CONFIG, racks__py=FIRST.replace('group="example.com"', 'group="nodots"'))
        with Program("up", "--nodes=1", *FLAGS, home=home) as program:
            assert await asyncio.to_thread(program.ended) == 2
            assert "Rack cannot be made a CustomResourceDefinition" in program.written()
            assert 'must be a domain with at least one dot, got "nodots"' in program.written()
        assert not (home / "mooring.kubeconfig").exists()


async def test_elsewhere_a_pod_that_waits_for_a_kind_names_the_command_to_paste():
    async with a_server() as (server, client, _):
        with private_home() as home:
            write(home, s__yaml=CONFIG, racks__py=FILTERING)
            server.write_kubeconfig(home / "k")
            await create_node(client, "one")
            with Program("run", "--kubeconfig=k", *FLAGS, home=home) as scheduler:
                await asyncio.to_thread(scheduler.ready)
                await create_pod(client, "web")
                message = await _refusal(client, "web")
                with Program("explain", "web", "--kubeconfig=k", home=home) as explain:
                    assert await asyncio.to_thread(explain.ended) == 0
    assert "it is tried again when racks.v1.example.com can be listed" in explain.written()
    assert "registered by" not in explain.written()
    assert message == (
        "profile default-scheduler waits for what its plugin ByRack reads: the server has no racks.example.com (v1); "
        "is its CustomResourceDefinition installed? This installs it: mooring crd generate ByRack --plugins racks.py | "
        "kubectl apply -f -"
    )


async def _refusal(client: ApiClient, pod: str) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await client.get(Pod.KIND, pod, "default")
            for condition in found["status"].get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return str(condition["message"])
            await asyncio.sleep(0)
