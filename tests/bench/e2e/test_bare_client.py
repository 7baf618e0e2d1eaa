"""The client that only posts bindings binds pods to nodes in turn, in Python as in Go."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.bench.e2e.bare_client import bind_all
from mooring.bench.e2e.contenders import bare_job
from mooring.bench.manifests import NAMESPACE, incoming_manifest, node_manifest
from mooring.bench.programs import BIND_RATE, find_program
from mooring.bench.workloads import WORKLOADS
from mooring.client import ApiClient, Connection
from mooring.objects import Kind, Node, Pod

PODS = [f"pod-{number:06d}" for number in range(5)]
NODES = ["node-00000", "node-00001"]
IN_TURN = [NODES[number % 2] for number in range(5)]


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    server = EmbeddedApiServer()
    await server.start()
    connection = Connection(server=server.url, source="test", token=server.token, ca_data=server.ca_pem.encode())
    async with ApiClient(connection) as found:
        namespaces = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
        await found.create(namespaces, {"metadata": {"name": NAMESPACE}})
        for number in range(2):
            await found.create(Node.KIND, node_manifest(WORKLOADS["basic"], number))
        for number in range(5):
            await found.create(Pod.KIND, incoming_manifest(WORKLOADS["basic"], number))
        yield found
    await server.stop()


async def nodes_of(client: ApiClient) -> list[str]:
    return [(await client.get(Pod.KIND, name, NAMESPACE))["spec"].get("nodeName", "") for name in PODS]


async def test_pods_are_bound_to_nodes_in_turn(client: ApiClient):
    assert await bind_all(bare_job(client.connection, PODS, NODES)) == {"bound": 5, "failed": 0}
    assert await nodes_of(client) == IN_TURN


async def test_a_failure_is_reported(client: ApiClient):
    report = await bind_all(bare_job(client.connection, [*PODS, "missing"], NODES))
    assert (report["bound"], report["failed"]) == (5, 1)
    assert "missing" in report["error"]


@pytest.mark.real
async def test_the_go_program_does_the_same(client: ApiClient):
    import asyncio

    program = find_program(BIND_RATE)
    if program is None:
        pytest.skip("`scripts/build-bind-rate` was not run")
    job = json.dumps(bare_job(client.connection, [*PODS, "missing"], NODES)).encode()
    done = await asyncio.to_thread(subprocess.run, [program], input=job, capture_output=True, check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, report["bound"], report["failed"]) == (1, 5, 1), done.stderr
    assert "missing" in report["error"]
    assert await nodes_of(client) == IN_TURN


@pytest.mark.real
def test_the_go_program_names_what_is_wrong_with_its_job():
    program = find_program(BIND_RATE)
    if program is None:
        pytest.skip("`scripts/build-bind-rate` was not run")
    done = subprocess.run([program], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        b"bind-rate: the job needs nodes, and at least one request in flight\n",
    )


def test_it_is_a_program_too():
    done = subprocess.run(
        [sys.executable, "-m", "mooring.bench.e2e.bare_client"], input=b"{", capture_output=True, check=False
    )
    assert done.returncode != 0
