"""The examples' manifests are the output of the `mooring manifests` commands in their READMEs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.command import printed
from tests.examples.conftest import EXAMPLES

from mooring.base.clock import SystemClock
from mooring.cli.demo.random_scheduler import NAME, RandomScheduler
from mooring.client import ApiClient, Connection
from mooring.client.transport import Transport
from mooring.config import load_configuration
from mooring.objects import Node, Pod
from mooring.plugins.catalogue import catalogue

SAMPLE, RANDOM = (EXAMPLES / name for name in ("sample-filter", "random-scheduler"))


def documents(file: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]


def the(kind: str, file: Path) -> dict[str, Any]:
    (found,) = [document for document in documents(file) if document["kind"] == kind]
    return found


WRITTEN = {
    "score-by-label": (
        "install.yaml",
        "--config examples/score-by-label/config.yaml --name scorebylabel-scheduler --namespace scorebylabel"
        " --verbosity 6",
    ),
    "sample-filter": (
        "sample-scheduler.yaml",
        "--config examples/sample-filter/scheduler-config.yaml --namespace kube-system --verbosity 3",
    ),
    "random-scheduler": (
        "install.yaml",
        "--config examples/random-scheduler/random-profile.yaml --namespace random-scheduler",
    ),
    "node-crd-resource-fit": (
        "install.yaml",
        "--config scheduler-config.yaml --namespace secondary-scheduler --verbosity 5",
    ),
    "network-traffic": (
        "kube-scheduler.yaml",
        "--config examples/network-traffic/networktraffic-config.yaml --as replacement --cluster-dns",
    ),
}
"""Each example's manifest, and the command in its README that writes it."""


@pytest.mark.parametrize(("example", "file", "command"), [(name, *each) for name, each in WRITTEN.items()])
def test_each_manifest_is_what_the_command_writes(example, file, command, monkeypatch):
    readme = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    assert f"mooring manifests {command}" in " ".join(readme.replace("\\\n", " ").split())
    monkeypatch.chdir(EXAMPLES.parent if "examples/" in command else EXAMPLES / example)
    assert (EXAMPLES / example / file).read_text(encoding="utf-8") == printed(*command.split())


def test_rights_are_given_to_the_account_that_runs():
    manifest = RANDOM / "from-scratch.yaml"
    account = the("ServiceAccount", manifest)["metadata"]
    deployment = the("Deployment", manifest)
    assert deployment["metadata"]["namespace"] == account["namespace"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    assert the("ClusterRoleBinding", manifest)["subjects"] == [subject]


CONFIGURATIONS = {
    "score-by-label/config.yaml": ["scorebylabel"],
    "sample-filter/scheduler-config.yaml": ["sample-scheduler"],
    "sample-filter/scheduler-config-v1.yaml": ["sample-scheduler"],
    "random-scheduler/random-profile.yaml": ["random-scheduler"],
}


@pytest.mark.parametrize(("file", "profiles"), CONFIGURATIONS.items(), ids=CONFIGURATIONS.keys())
def test_every_configuration_loads_from_a_bare_install(file, profiles):
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    loaded = load_configuration(text, source=file, registry=catalogue())
    assert [profile.scheduler_name for profile in loaded.configuration.profiles] == profiles


@pytest.mark.parametrize("example", [SAMPLE, RANDOM], ids=lambda path: path.name)
def test_a_configuration_to_paste_is_the_one_in_the_file(example):
    (block,) = (example / "README.md").read_text(encoding="utf-8").split("```yaml\n")[1:]
    (file,) = [
        example / name for name in ("scheduler-config-v1.yaml", "random-profile.yaml") if (example / name).exists()
    ]
    assert yaml.safe_load(block.partition("```")[0]) == yaml.safe_load(file.read_text(encoding="utf-8"))


class NotingTransport(Transport):
    """Records the requests as RBAC sees them: verb and resource."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, clock=SystemClock(), user_agent="test", in_flight=8, qps=None, burst=None)
        self.requested: set[tuple[str, str]] = set()
        self.news = asyncio.Event()

    async def request(self, method: str, path: str, *args: Any, **options: Any) -> bytes:
        self._note("list" if method == "GET" else {"POST": "create"}[method], path)
        return await super().request(method, path, *args, **options)

    @asynccontextmanager
    async def stream(
        self, path: str, *, seconds: float, is_urgent: bool = False
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self._note("watch", path)
        if "sendInitialEvents" in path:
            self._note("list", path)  # a watch with an initial list; a server without support for it is listed
        async with super().stream(path, seconds=seconds, is_urgent=is_urgent) as chunks:
            yield chunks

    def _note(self, verb: str, path: str) -> None:
        # /api/v1/nodes?…, /api/v1/namespaces/default/pods/nginx/binding
        parts = path.partition("?")[0].removeprefix("/api/v1/").split("/")
        parts = parts[2:] if parts[0] == "namespaces" else parts
        self.requested.add((verb, "/".join([parts[0], *parts[2:]])))
        self.news.set()


class EverythingPasses(random.Random):
    def randrange(self, start: int, *_: Any) -> int:
        return 0


async def test_the_random_schedulers_role_has_the_rights_it_uses(client, connection):
    granted = {
        (verb, resource)
        for rule in the("ClusterRole", RANDOM / "from-scratch.yaml")["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    await client.create(Node.KIND, {"metadata": {"name": "node-1"}})
    spec = {"schedulerName": NAME, "containers": [{"name": "nginx", "image": "nginx"}]}
    await client.create(Pod.KIND, {"metadata": {"name": "nginx", "namespace": "default"}, "spec": spec})
    async with ApiClient(connection) as watched, asyncio.timeout(90), asyncio.TaskGroup() as tasks:
        watched.transport = transport = NotingTransport(connection)
        running = tasks.create_task(RandomScheduler(watched, EverythingPasses()).run())
        while not transport.requested >= granted:
            transport.news.clear()
            await transport.news.wait()
        running.cancel()
    assert transport.requested == granted
