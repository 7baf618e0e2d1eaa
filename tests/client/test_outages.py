"""A server that is away, or has just started, is logged once for all kinds that are watched on it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.client.conftest import FakeServer, InstantClock, RememberingFeed, until
from tests.client.test_observed import Observed
from tests.client.test_reflector import a_list, a_pod, a_status, reflecting

from mooring.base import log
from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError, Unreachable
from mooring.client import ApiClient, Reflector, outages
from mooring.client.outages import BINDINGS_SECONDS, REMINDER_SECONDS, ROLES_SECONDS, Outage
from mooring.objects import Kind, KubeObject, Node, Pod
from mooring.objects.policy import PodDisruptionBudget

NODES = Kind("", "v1", "Node", "nodes")
KINDS: tuple[type[KubeObject], ...] = (Pod, Node, PodDisruptionBudget)
UNKNOWN_ROLE = (
    'nodes is forbidden: User "system:serviceaccount:m:m" cannot list resource "nodes" in API group "" at the cluster '
    'scope: RBAC: [clusterrole.rbac.authorization.k8s.io "mooring:mooring" not found, '
    'clusterrole.rbac.authorization.k8s.io "system:basic-user" not found]'
)
STARTS = (403, a_status(403, "Forbidden", UNKNOWN_ROLE))
FORBIDDEN = (
    403,
    a_status(403, "Forbidden", 'nodes is forbidden: User "u" cannot list resource "nodes" in API group ""'),
)


STARTED = "API server has just started and has not loaded its RBAC rules yet; retrying requests"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    before = log._settings.stream
    log.configure(stream=stream)
    yield stream
    log._settings.stream = before


def logged(lines: io.StringIO) -> list[str]:
    """The messages so far."""
    return [line.split('] "')[1].split('"')[0] for line in lines.getvalue().splitlines()]


async def test_an_outage_of_many_kinds_is_two_lines(
    fake, serve, authority, tmp_path, clock, reserved, lines, monkeypatch
):
    monkeypatch.setattr(outages, "REMINDER_SECONDS", 1e12)  # time flies on this clock
    away = fake()
    away.port = reserved.getsockname()[1]

    async def respond(request: Any) -> Any:
        if "watch" in request.query:
            await asyncio.Event().wait()
        return away.plain(a_list())

    away.respond = respond
    feeds = [RememberingFeed() for _ in KINDS]
    async with ApiClient(away.connection(), clock=clock) as client, AsyncExitStack() as stack:
        reflectors = [Reflector(client, kind, feed) for kind, feed in zip(KINDS, feeds, strict=True)]
        for reflector in reflectors:
            await stack.enter_async_context(reflecting(reflector))
        await until(lambda: all(reflector.problem is not None for reflector in reflectors))
        assert all("connection refused" in str(reflector.problem) for reflector in reflectors)
        async with serve(away, authority.server_context(tmp_path), sock=reserved):
            for feed in feeds:
                await feed.receives(("listed", []))
            assert all(reflector.problem is None for reflector in reflectors)
    assert logged(lines) == [
        "API server cannot be reached; retrying",
        "API server responds again; list/watch recovered",
    ]


def test_a_new_problem_and_one_that_lasts_are_logged(lines: io.StringIO):
    clock, own = ManualClock(), log.Log("test")
    outage = Outage(clock)
    for watcher, problem in (("a", "cut"), ("b", "cut"), ("b", "refused"), ("a", "refused"), ("a", "cut")):
        outage.met(watcher, problem, own)
    assert len(logged(lines)) == 2
    clock.advance(REMINDER_SECONDS)
    outage.met("a", "refused", own)
    assert len(logged(lines)) == 3
    outage.over("a", own)
    assert len(logged(lines)) == 3
    outage.over("b", own)
    outage.over("b", own)
    assert logged(lines)[3:] == ["API server responds again; list/watch recovered"]
    assert f"seconds={REMINDER_SECONDS}" in lines.getvalue()


def test_a_watcher_that_ended_does_not_keep_an_outage_going(lines: io.StringIO):
    outage = Outage(ManualClock())
    outage.met("a", "cut", log.Log("test"))
    outage.over("a", log.Log("test"))
    outage.met("b", "cut", log.Log("test"))
    assert len(logged(lines)) == 3


async def test_a_server_that_does_not_know_its_roles_yet_is_retried_with_one_line(client, server, feed, lines):
    server.lists += [STARTS, STARTS, STARTS, a_list(a_pod("a"))]
    server.watches += [STARTS, STARTS]
    reflector = Reflector(client, Pod, feed)
    async with reflecting(reflector):
        await feed.receives(("listed", ["a"]))
        await server.held.wait()
        assert reflector.problem is None
    assert logged(lines) == [STARTED]


async def cut_off(client: ApiClient, server: FakeServer) -> None:
    async def cut(request: Any) -> Any:
        request.transport.abort()
        return server.plain({})

    server.respond = cut
    with pytest.raises(Unreachable):
        await client.get(NODES, "n")
    server.respond = None


async def test_a_server_that_knows_no_binding_yet_is_retried_after_an_outage(client, server, clock, lines):
    await cut_off(client, server)
    server.lists += [FORBIDDEN, FORBIDDEN, STARTS, {}]
    await client.get(NODES, "n")
    assert logged(lines) == [STARTED]
    clock.advance(BINDINGS_SECONDS)
    server.lists += [FORBIDDEN]
    with pytest.raises(ApiError):
        await client.get(NODES, "n")


async def test_a_right_that_is_missing_after_an_outage_is_one_after_some_seconds(client, server, clock):
    await cut_off(client, server)
    server.lists += [FORBIDDEN] * 100
    began = clock.monotonic()
    with pytest.raises(ApiError):
        await client.get(NODES, "n")
    assert BINDINGS_SECONDS <= clock.monotonic() - began < BINDINGS_SECONDS + 1


async def test_a_request_that_admission_refuses_is_not_retried(client, server):
    await cut_off(client, server)
    server.lists += [(403, a_status(403, "Forbidden", 'pods "a" is forbidden: exceeded quota: q'))]
    before = len(server.requests)
    with pytest.raises(ApiError):
        await client.get(NODES, "n")
    assert len(server.requests) == before + 1


async def test_a_watch_that_expired_meanwhile_is_listed_again_without_a_word(client, server, feed, lines):
    server.lists += [a_list(a_pod("a")), a_list(a_pod("b"))]
    server.watches += [(500, a_status(500)), (410, a_status(410, "Expired", "too old resource version"))]
    reflector = Reflector(client, Pod, feed)
    async with reflecting(reflector):
        await feed.receives(("listed", ["a"]), ("listed", ["b"]))
    assert [line for line in lines.getvalue().splitlines() if "too old" in line] == []


async def test_such_refusals_do_not_count_as_forbidden(server: FakeServer, clock: InstantClock):
    observed = Observed()
    server.lists += [STARTS, {}, FORBIDDEN]
    async with ApiClient(server.connection(), clock=clock, observer=observed) as client:
        await client.get(NODES, "n")
        with pytest.raises(ApiError):
            await client.get(NODES, "n")
    assert [code for _, _, code in observed.responses] == ["<error>", "200", "403"]


async def test_a_role_that_is_still_missing_after_a_while_is_a_missing_right(
    client: ApiClient, server: FakeServer, clock: InstantClock
):
    server.lists += [STARTS] * 100
    began = clock.monotonic()
    with pytest.raises(ApiError, match="this RBAC rule would allow it"):
        await client.get(NODES, "n")
    assert ROLES_SECONDS <= clock.monotonic() - began < ROLES_SECONDS + 1
    before = len(server.requests)
    with pytest.raises(ApiError):
        await client.get(NODES, "n")
    assert len(server.requests) == before + 1


async def test_a_right_that_is_missing_is_not_retried(client: ApiClient, server: FakeServer):
    server.lists += [FORBIDDEN]
    with pytest.raises(ApiError):
        await client.get(NODES, "n")
    assert len(server.requests) == 1


async def test_once_the_connection_was_lost_it_may_be_a_server_that_starts_again(client: ApiClient, server: FakeServer):
    server.lists += [STARTS] * 100
    with pytest.raises(ApiError):
        await client.get(NODES, "n")
    server.lists.clear()
    await cut_off(client, server)
    server.lists += [STARTS, {}]
    await client.get(NODES, "n")
