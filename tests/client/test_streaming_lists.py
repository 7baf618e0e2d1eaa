"""A list that comes as the beginning of a watch; and a plain list where the server has no such thing."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest
from tests.client.conftest import until
from tests.client.test_reflector import a_list, a_pod, a_status, bookmark, event, reflecting, watched_from

from mooring.client import Reflector, reflector
from mooring.objects import Pod


def all_has_come(version: int) -> bytes:
    metadata = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    return event("BOOKMARK", {"metadata": metadata})


def streamed(server) -> list[str]:
    return [path for path, _ in server.requested("GET") if "sendInitialEvents=true" in path]


def listed(server) -> list[str]:
    return [path for path, _ in server.requested("GET") if "watch=true" not in path]


async def test_one_response_brings_the_list_and_then_every_change(client, server, feed, watch):
    server.streams = deque(
        [
            watch(
                event("ADDED", a_pod("a", 3)),
                event("ADDED", a_pod("b", 9)),
                all_has_come(10),
                event("ADDED", a_pod("c", 11)),
                event("DELETED", a_pod("a", 12)),
            )
        ]
    )
    reflecting_pods = Reflector(client, Pod, feed, field_selector="spec.nodeName=x")
    async with reflecting(reflecting_pods):
        await feed.receives(("listed", ["a", "b"]), ("changed", "c"), ("deleted", "a"))
        await server.held.wait()
    (requested,) = streamed(server)
    assert "resourceVersionMatch=NotOlderThan" in requested
    assert "allowWatchBookmarks=true" in requested
    assert "fieldSelector=spec.nodeName%3Dx" in requested
    assert not listed(server)
    assert watched_from(server) == ["12"]  # it goes on where the stream ended


async def test_what_changes_during_the_list_is_part_of_it(client, server, feed, watch):
    server.streams = deque(
        [
            watch(
                event("ADDED", a_pod("a", 3)),
                event("ADDED", a_pod("b", 4)),
                event("DELETED", a_pod("a", 11)),
                event("MODIFIED", a_pod("b", 12)),
                bookmark(12),
                all_has_come(12),
                then="hold",
            )
        ]
    )
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("deleted", "a"), ("listed", ["b"]))
    assert feed.parts == ["a", "b", "b"]


@pytest.mark.parametrize(
    "response",
    [
        (422, a_status(422, "Invalid", "sendInitialEvents: Forbidden: for watch unless the WatchList gate is on")),
        (400, a_status(400, "BadRequest")),
        (500, a_status(500, "InternalError")),
    ],
)
async def test_a_server_that_refuses_it_is_listed_at_once(client, server, feed, clock, response):
    server.streams = deque([response])
    server.lists.append(a_list(a_pod("a")))
    reflector = Reflector(client, Pod, feed)
    async with reflecting(reflector):
        await feed.receives(("listed", ["a"]))
        await server.held.wait()
    assert clock.slept == []
    assert reflector.problem is None
    assert watched_from(server) == ["10"]


async def test_a_server_whose_storage_cannot_do_it_reports_that_in_the_stream(client, server, feed, clock, watch):
    refusal = a_status(500, "InternalError", "the required storage feature RequestWatchProgress is disabled")
    server.streams = deque([watch(event("ERROR", refusal))])
    server.lists.append(a_list(a_pod("a")))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["a"]))
    assert clock.slept == []


async def test_a_stream_that_ends_early_is_no_complete_list(client, server, feed, watch):
    server.streams = deque([watch(event("ADDED", a_pod("a", 3)))])
    server.lists.append(a_list(a_pod("b"), version=20))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["b"]))
        await server.held.wait()
    assert feed.parts == ["a", "b"]
    assert watched_from(server) == ["20"]


async def test_what_a_stream_brings_is_passed_on_before_it_is_complete(client, server, feed, watch):
    server.streams = deque([watch(event("ADDED", a_pod("a", 3)), event("ADDED", a_pod("b", 4)), then="hold")])
    pods: Reflector[Any] = Reflector(client, Pod, feed)
    async with reflecting(pods):
        await until(lambda: feed.parts == ["a", "b"])
        assert not pods.is_listed
        assert feed.received.empty()


async def test_a_server_that_never_sends_the_final_bookmark_is_listed(client, server, feed, watch, monkeypatch):
    monkeypatch.setattr(reflector, "SILENT_LIST_SECONDS", 0.05)
    server.streams = deque([watch(event("ADDED", a_pod("a", 3)), then="hold")])
    server.lists.append(a_list(a_pod("b")))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["b"]))


async def test_once_everything_came_the_stream_may_be_silent_for_as_long_as_a_watch(
    client, server, feed, watch, monkeypatch
):
    server.streams = deque([watch(all_has_come(3), then="hold")])
    pods: Reflector[Any] = Reflector(client, Pod, feed)
    async with reflecting(pods):
        await feed.receives(("listed", []))
        loop = asyncio.get_running_loop()
        before = loop.time
        monkeypatch.setattr(loop, "time", lambda: before() + reflector.SILENT_LIST_SECONDS)  # so much passes at once
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await feed.received.get()
    assert len(server.requests) == 1
    assert pods.problem is None


async def test_a_stream_that_is_cut_before_everything_came_is_tried_again(client, server, feed, clock, watch):
    server.streams = deque(
        [watch(event("ADDED", a_pod("a", 3)), then="cut"), watch(all_has_come(7), then="hold")],
    )
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []))
    assert 0 < sum(clock.slept) <= 0.5


async def test_a_stream_is_a_watch_when_it_is_cut_later(client, server, feed, clock, watch):
    server.streams = deque([watch(all_has_come(7), event("ADDED", a_pod("a", 8)), then="cut")])
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("changed", "a"))
        await server.held.wait()
    assert watched_from(server) == ["8"]
    assert clock.slept == []


async def test_after_410_everything_is_streamed_again(client, server, feed, watch):
    server.streams = deque([watch(all_has_come(7)), watch(event("ADDED", a_pod("z", 9)), all_has_come(9), then="hold")])
    server.watches.append((410, a_status(410, "Expired")))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("listed", ["z"]))
    assert not listed(server)


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_what_a_plain_list_would_meet_too_is_no_reason_for_one(waiting_client, server, feed, code):
    server.streams = deque([(code, a_status(code))])
    pods = Reflector(waiting_client, Pod, feed)
    async with reflecting(pods):
        await pods.settled.wait()
        assert pods.problem is not None
    assert not listed(server)
