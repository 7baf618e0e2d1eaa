"""A binding whose response was lost: sent again until it is known what became of it."""

from typing import Any, cast

import pytest
from tests.client.conftest import InstantClock

from mooring.base.errors import ApiError, Unreachable
from mooring.client import ApiClient
from mooring.scheduler.plugin_runtime.api_binder import BACKOFF, MOST_RETRIES_SECONDS, ApiBinder
from mooring.testing import a_pod

LOST = Unreachable("the connection was cut")
ASSIGNED = ApiError(409, "Conflict", "pod web is already assigned to node")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
NO_TIME = ApiError(504, "Timeout", "request did not complete within the timeout")
FORBIDDEN = ApiError(403, "Forbidden", "cannot create pods/binding")


class Server:
    """Responds to bindings with these failures, then with success; knows where the pod is."""

    def __init__(self, *failures: Exception, node: str = "", uid: str = "u1", silent: int = 0) -> None:
        self.transport = self
        self.failures = list(failures)
        self.pod: dict[str, Any] = {"metadata": {"uid": uid}, "spec": {"nodeName": node} if node else {}}
        self.requested = 0
        self.silent = silent
        self.pauses: list[float] = []

    async def bind(self, namespace: str, name: str, uid: str, node: str, **metadata: dict[str, str]) -> None:
        self.requested += 1
        self.metadata = metadata
        if self.failures:
            raise self.failures.pop(0)

    async def pause(self, seconds: float) -> None:
        """Until the server responds to others."""
        self.pauses.append(seconds)

    async def get(self, kind: object, name: str, namespace: str) -> dict[str, Any]:
        if self.silent:
            self.silent -= 1
            raise FORBIDDEN
        return self.pod


async def bind(server: Server) -> None:
    await ApiBinder(cast(ApiClient, server), InstantClock()).bind(a_pod("web", uid="u1"), "here")


@pytest.mark.parametrize(
    ("server", "requested"),
    [
        pytest.param(Server(), 1, id="the first time"),
        pytest.param(Server(LOST, LOST), 3, id="when the server responds again"),
        pytest.param(Server(LOST, ASSIGNED, node="here"), 2, id="by the binding whose response was lost"),
        pytest.param(
            Server(LOST, FORBIDDEN, node="here", silent=1), 3, id="though the server forbids all while it starts"
        ),
        pytest.param(Server(BROKEN, node="here"), 1, id="by a server that broke down afterwards"),
        pytest.param(Server(NO_TIME, node="here"), 1, id="by a server that had no time to respond"),
        pytest.param(Server(NO_TIME, NO_TIME, NO_TIME), 4, id="when a server that had no time has some"),
        pytest.param(Server(LOST, NO_TIME), 3, id="when a server that came back has time"),
    ],
)
async def test_the_pod_is_bound(server: Server, requested: int):
    await bind(server)
    assert server.requested == requested


@pytest.mark.parametrize(
    ("server", "response"),
    [
        pytest.param(Server(ASSIGNED, node="here"), ASSIGNED, id="another scheduler bound it"),
        pytest.param(Server(LOST, ASSIGNED, node="elsewhere"), ASSIGNED, id="another scheduler was faster"),
        pytest.param(Server(LOST, ASSIGNED, node="here", uid="u2"), ASSIGNED, id="it was recreated"),
        pytest.param(Server(FORBIDDEN), FORBIDDEN, id="it is forbidden"),
        pytest.param(Server(BROKEN), BROKEN, id="the server broke down before it was bound"),
        pytest.param(Server(*[NO_TIME] * 100), NO_TIME, id="the server has no time for long"),
        pytest.param(Server(NO_TIME, NO_TIME, node="elsewhere"), NO_TIME, id="another bound it meanwhile"),
    ],
)
async def test_the_pod_is_not_bound_if(server: Server, response: Exception):
    with pytest.raises(type(response), match=str(response)):
        await bind(server)


async def test_a_pod_keeps_its_room_for_a_while_when_the_server_has_no_time_and_then_backs_off():
    server, clock = Server(*[NO_TIME] * 100), InstantClock()
    with pytest.raises(ApiError, match="did not complete"):
        await ApiBinder(cast(ApiClient, server), clock).bind(a_pod("web", uid="u1"), "here")
    assert MOST_RETRIES_SECONDS < sum(clock.slept) <= MOST_RETRIES_SECONDS + BACKOFF.limit_seconds


async def test_while_the_server_is_away_pauses_end_when_it_responds_to_others_and_are_short_again_when_it_is_back():
    server, clock = Server(*[LOST] * 8, NO_TIME, NO_TIME), InstantClock()
    await ApiBinder(cast(ApiClient, server), clock).bind(a_pod("web", uid="u1"), "here")
    assert server.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert list(clock.slept) == [0.05, 0.1]
