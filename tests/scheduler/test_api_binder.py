"""A binding whose answer was lost: said again until it is known what became of it."""

from typing import Any, cast

import pytest

from mooring.base.clock import SystemClock
from mooring.base.errors import ApiError, Unreachable
from mooring.client import ApiClient
from mooring.scheduler.api_binder import ApiBinder
from mooring.testing import a_pod

LOST = Unreachable("the connection was cut")
ASSIGNED = ApiError(409, "Conflict", "pod web is already assigned to node")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")


FORBIDDEN = ApiError(403, "Forbidden", "cannot create pods/binding")


class Server:
    """Answers bindings with these failures, then with success; knows where the pod is."""

    def __init__(self, *failures: Exception, node: str = "", uid: str = "u1", silent: int = 0) -> None:
        self.failures = list(failures)
        self.pod: dict[str, Any] = {"metadata": {"uid": uid}, "spec": {"nodeName": node} if node else {}}
        self.asked = 0
        self.silent = silent

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)

    async def get(self, kind: object, name: str, namespace: str) -> dict[str, Any]:
        if self.silent:
            self.silent -= 1
            raise FORBIDDEN
        return self.pod


async def bind(server: Server) -> None:
    await ApiBinder(cast(ApiClient, server), SystemClock()).bind(a_pod("web", uid="u1"), "here")


@pytest.mark.parametrize(
    ("server", "asked"),
    [
        pytest.param(Server(), 1, id="the first time"),
        pytest.param(Server(LOST, LOST), 3, id="when the server answers again"),
        pytest.param(Server(LOST, ASSIGNED, node="here"), 2, id="by the binding whose answer was lost"),
        pytest.param(
            Server(LOST, FORBIDDEN, node="here", silent=1), 3, id="though the server forbids all while it starts"
        ),
        pytest.param(Server(BROKEN, node="here"), 1, id="by a server that broke down afterwards"),
    ],
)
async def test_the_pod_is_bound(server: Server, asked: int):
    await bind(server)
    assert server.asked == asked


@pytest.mark.parametrize(
    ("server", "answer"),
    [
        pytest.param(Server(ASSIGNED, node="here"), ASSIGNED, id="somebody else bound it"),
        pytest.param(Server(LOST, ASSIGNED, node="elsewhere"), ASSIGNED, id="somebody else was faster"),
        pytest.param(Server(LOST, ASSIGNED, node="here", uid="u2"), ASSIGNED, id="a namesake is there"),
        pytest.param(Server(FORBIDDEN), FORBIDDEN, id="it is forbidden"),
        pytest.param(Server(BROKEN), BROKEN, id="the server broke down before it was bound"),
    ],
)
async def test_the_pod_is_not_bound_if(server: Server, answer: Exception):
    with pytest.raises(type(answer), match=str(answer)):
        await bind(server)
