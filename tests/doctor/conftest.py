"""A server with everything a scheduler needs; a test takes something away and runs the doctor."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.client.conftest import Authority, FakeServer, an_authority, serving

from mooring.base.clock import ManualClock
from mooring.client import ApiClient
from mooring.config import default_configuration
from mooring.doctor import Finding, PlannedScheduler, examine
from mooring.framework.gates import FeatureGates
from mooring.plugins.catalogue import catalogue

Document = dict[str, Any]


class Cluster:
    """The server's responses; `allows` decides about rights."""

    def __init__(self, authority: Authority) -> None:
        self.fake = FakeServer(authority)
        self.fake.respond = self._respond
        self.version: Document = {"major": "1", "minor": "36", "gitVersion": "v1.36.4"}
        self.served: dict[str, list[str]] = {"/api/v1": ["pods", "nodes"], "/apis/events.k8s.io/v1": ["events"]}
        self.lease: Document | None = None
        self.user = "operator"
        self.words = ""
        self.events: list[Document] = []
        self.allows: Callable[[Document], bool] = lambda _: True
        self.codes: dict[str, int] = {}
        """Paths that are refused with this code."""
        self.headers: dict[str, str] = {}
        self.metrics: str | None = None

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        if code := self.codes.get(request.path):
            return web.json_response({"code": code, "message": self.words or f"no {request.path}"}, status=code)
        if request.path == "/metrics" and self.metrics is not None:
            return web.Response(text=self.metrics)
        document = await self._document(request)
        if document is None:
            return web.json_response({"code": 404, "message": f"no {request.path}"}, status=404)
        return web.json_response(document, headers=self.headers)

    async def _document(self, request: web.BaseRequest) -> Document | None:
        if request.path == "/version":
            return self.version
        if request.path in self.served:
            return {"resources": [{"name": plural} for plural in self.served[request.path]]}
        if request.path.endswith("/selfsubjectreviews"):
            return {"status": {"userInfo": {"username": self.user}}}
        if request.path.endswith("/selfsubjectaccessreviews"):
            attributes = (await request.json())["spec"]["resourceAttributes"]
            return {"status": {"allowed": self.allows(attributes)}}
        if request.path.endswith("/leases/kube-scheduler"):
            return self.lease
        if request.path == "/api/v1/events":
            reason = request.query["fieldSelector"].removeprefix("reason=")
            found = [event for event in self.events if event["reason"] == reason]
            return {"items": found, "metadata": {}}
        return None


@pytest.fixture(scope="session")
def its_authority() -> Authority:
    return an_authority(days=90)


@pytest.fixture
def clock() -> ManualClock:
    """The present (certificates have a beginning and an end), and it stands still: the time of a response does not
    matter."""
    return ManualClock(time.time())


def http_date(clock: ManualClock, ahead_seconds: float = 0) -> str:
    """The Date header of a server whose clock is so far ahead."""
    return formatdate(clock.now() + ahead_seconds, usegmt=True)


@pytest.fixture
async def cluster(its_authority: Authority, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Cluster]:
    made = Cluster(its_authority)
    made.headers["Date"] = http_date(clock)
    async with serving(made.fake, its_authority.server_context(tmp_path)):
        yield made


@pytest.fixture
def plan() -> PlannedScheduler:
    registry, gates = catalogue(), FeatureGates()
    configuration = default_configuration(registry, gates)
    return PlannedScheduler(
        configuration, registry, configuration.leader_election, gates, remedy="All rules: mooring manifests"
    )


@pytest.fixture
def findings(cluster: Cluster, plan: PlannedScheduler, clock: ManualClock) -> Callable[..., Any]:
    """Run the doctor; returns the findings of one check."""

    for kind in plan.readers():
        root = f"/apis/{kind.KIND.api_version}" if kind.KIND.group else "/api/v1"
        cluster.served.setdefault(root, []).append(kind.KIND.plural)

    async def of_check(check: str, plan: PlannedScheduler = plan, **connection: Any) -> list[Finding]:
        async with ApiClient(cluster.fake.connection(**connection), clock=clock, in_flight=4) as client:
            return [finding for finding in await examine(client, plan) if finding.check == check]

    return of_check
