"""Events: one object for what repeats itself, and never a burden to what happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.conftest import PATIENCE_SECONDS

from mooring.base.clock import ManualClock, micro_timestamp
from mooring.base.errors import Unreachable
from mooring.client import EventRecorder
from mooring.client.recorder import LATE_SECONDS, MOST_SENDERS, SENDERS, shortened
from mooring.objects.core import ObjectReference

POD = ObjectReference(kind="Pod", api_version="v1", namespace="shop", name="web", uid="u1", resource_version="7")
FAILED: dict[str, Any] = {
    "type": "Warning",
    "reason": "FailedScheduling",
    "action": "Scheduling",
    "note": "0/3 nodes are available",
}
EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"


def patches(server) -> list[Any]:
    return [body for _, body in server.requested("PATCH")]


@pytest.fixture
def accepting(server):
    """A server that takes every event."""

    async def respond(request):
        return server.plain({})

    server.respond = respond
    return server


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


@pytest.fixture
def recorder(client, time) -> EventRecorder:
    return EventRecorder(client, controller="default-scheduler", instance="default-scheduler-host", clock=time)


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def sent(recorder: EventRecorder) -> None:
    """Until everything due is with the server, while `run` runs (a flush would also write what is only counted)."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while recorder.pending:  # noqa: ASYNC110 (a plain number changes)
            await asyncio.sleep(0)


async def test_an_event_in_its_final_form(recorder, accepting, time):
    recorder.record(POD, **FAILED, related=ObjectReference(kind="Node", name="n1"))
    await recorder.flush(PATIENCE_SECONDS)
    assert accepting.requests == [
        (
            "POST",
            EVENTS,
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"web.{int(time.now() * 1e9):x}", "namespace": "shop"},
                "eventTime": micro_timestamp(time.now()),
                "type": "Warning",
                "reason": "FailedScheduling",
                "action": "Scheduling",
                "note": "0/3 nodes are available",
                "reportingController": "default-scheduler",
                "reportingInstance": "default-scheduler-host",
                "regarding": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": "shop",
                    "name": "web",
                    "uid": "u1",
                    "resourceVersion": "7",
                },
                "related": {"kind": "Node", "name": "n1"},
            },
        )
    ]


async def test_an_event_about_something_without_a_namespace_goes_to_default(recorder, accepting):
    recorder.record(ObjectReference(kind="Node", name="n1"), **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert accepting.requests[0][1] == "/apis/events.k8s.io/v1/namespaces/default/events"


async def test_the_second_is_written_at_once_and_later_ones_are_only_counted(recorder, accepting, time):
    async with running(recorder):
        for _ in range(5):
            recorder.record(POD, **FAILED | {"note": f"at {time.now()}"})
            await sent(recorder)
            time.advance(10)
    (created,) = accepting.requested("POST")
    name = created[1]["metadata"]["name"]
    assert accepting.requested("PATCH") == [
        (f"{EVENTS}/{name}", {"series": {"count": 2, "lastObservedTime": micro_timestamp(time.now() - 40)}})
    ]


async def test_a_series_is_finished_when_it_has_been_quiet_for_six_minutes(recorder, accepting, time):
    async with running(recorder):
        for _ in range(4):
            recorder.record(POD, **FAILED)
            await sent(recorder)
        time.advance(6 * 60)
        await asyncio.sleep(0)
        await sent(recorder)
        assert [patch["series"]["count"] for patch in patches(accepting)] == [2, 4]
        recorder.record(POD, **FAILED)
        await sent(recorder)
    assert len(accepting.requested("POST")) == 2  # what comes after is a new event


async def test_a_series_that_goes_on_is_refreshed_every_thirty_minutes(recorder, accepting, time):
    async with running(recorder):
        for _ in range(2):
            recorder.record(POD, **FAILED)
        await sent(recorder)
        for _ in range(30):  # once a minute
            time.advance(60)
            recorder.record(POD, **FAILED)
            for _ in range(3):
                await asyncio.sleep(0)
            await sent(recorder)
    assert [patch["series"]["count"] for patch in patches(accepting)] == [2, 32]
    assert len(accepting.requested("POST")) == 1


APART = {
    "another version of the object": ({"resource_version": "8"}, {}),
    "another object": ({"uid": "u2"}, {}),
    "another reason": ({}, {"reason": "Preempted"}),
    "another action": ({}, {"action": "Binding"}),
    "another type": ({}, {"type": "Normal"}),
    "another related object": ({}, {"related": ObjectReference(name="n1")}),
}


@pytest.mark.parametrize(("about", "fields"), APART.values(), ids=APART.keys())
async def test_what_makes_an_event_of_its_own(recorder, accepting, about, fields):
    recorder.record(POD, **FAILED)
    recorder.record(msgspec.structs.replace(POD, **about), **FAILED | fields)
    await recorder.flush(PATIENCE_SECONDS)
    assert len(accepting.requested("POST")) == 2
    assert patches(accepting) == []
    assert len({body["metadata"]["name"] for _, body in accepting.requested("POST")}) == 2


async def test_several_controllers_share_a_recorder_under_their_own_names(recorder, accepting):
    recorder.for_controller("gpu", "gpu-host").record(POD, **FAILED)
    recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    names = {(body["reportingController"], body["reportingInstance"]) for _, body in accepting.requested("POST")}
    assert names == {("gpu", "gpu-host"), ("default-scheduler", "default-scheduler-host")}


async def test_the_patch_of_a_series_never_overtakes_its_creation(recorder, server):
    order: list[str] = []
    may_create = asyncio.Event()

    async def respond(request):
        if request.method == "POST":
            await may_create.wait()
        order.append(request.method)
        return server.plain({})

    server.respond = respond
    async with running(recorder):
        recorder.record(POD, **FAILED)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not server.requests:  # noqa: ASYNC110 (the fake server has no event for it)
                await asyncio.sleep(0)
        recorder.record(POD, **FAILED)
        may_create.set()
        await sent(recorder)
    assert order == ["POST", "PATCH"]


async def test_an_event_that_is_on_its_way_when_all_is_flushed_is_written_once(recorder, server):
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def respond(request):
        arrived.set()
        await go_on.wait()
        return server.plain({})

    server.respond = respond
    async with running(recorder):
        recorder.record(POD, **FAILED)
        await arrived.wait()
        flushing = asyncio.create_task(recorder.flush(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        go_on.set()
        await flushing
    assert [method for method, *_ in server.requests] == ["POST"]
    assert recorder.dropped == 0


async def test_an_event_that_expired_is_written_again_with_its_count(recorder, server):
    known: set[str] = set()

    async def respond(request):
        if request.method == "POST":
            known.add((await request.json())["metadata"]["name"])
            return server.plain({})
        return server.plain({} if request.path.rsplit("/", 1)[1] in known else (404, {"message": "not found"}))

    server.respond = respond
    async with running(recorder):
        recorder.record(POD, **FAILED)
        await sent(recorder)
        known.clear()
        recorder.record(POD, **FAILED)
        await sent(recorder)
    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "POST", "PATCH"]


async def test_what_was_only_counted_is_written_at_the_end(recorder, accepting):
    for _ in range(7):
        recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert patches(accepting)[-1]["series"]["count"] == 7


async def test_a_full_queue_drops_and_counts(recorder, accepting, monkeypatch):
    monkeypatch.setattr("mooring.client.recorder.QUEUED", 20)
    for number in range(23):
        recorder.record(ObjectReference(name=f"pod-{number}"), **FAILED)
    assert recorder.dropped == 3
    await recorder.flush(PATIENCE_SECONDS)
    assert len(accepting.requests) == 20


async def test_few_events_are_sent_at_once_and_many_where_the_oldest_waits_long(recorder, server, time):
    begun, may_end = [], asyncio.Event()

    async def respond(request):
        begun.append(request)
        await may_end.wait()
        return server.plain({})

    async def are_sent_at_once(number: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(begun) < number:  # noqa: ASYNC110 (a plain number changes)
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert recorder.pending - len(recorder._queue) == number

    server.respond = respond
    async with running(recorder):
        for number in range(100):
            recorder.record(ObjectReference(name=f"pod-{number}"), **FAILED)
        await are_sent_at_once(SENDERS)
        time.advance(LATE_SECONDS)
        recorder.record(POD, **FAILED)
        await are_sent_at_once(MOST_SENDERS)
        may_end.set()
        await sent(recorder)
    assert (len(begun), recorder.dropped) == (101, 0)


async def test_events_yield_to_the_requests_of_another_client(client, server, time):
    other = client.beside("bindings")
    recorder = EventRecorder(client, controller="c", clock=time, yields_to=other)
    assert recorder._most_senders() == MOST_SENDERS
    arrived, may_end = asyncio.Event(), asyncio.Event()

    async def respond(request):
        arrived.set()
        await may_end.wait()
        return server.plain({})

    server.respond = respond
    binding = asyncio.create_task(other.bind("shop", "web", "u1", "n1"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await arrived.wait()
        assert recorder._most_senders() == SENDERS
        may_end.set()
        await binding
    assert recorder._most_senders() == MOST_SENDERS
    await other.close()


async def test_only_so_many_events_are_remembered_and_none_loses_its_count(recorder, accepting, monkeypatch):
    monkeypatch.setattr("mooring.client.recorder.REMEMBERED", 2)
    async with running(recorder):
        for _ in range(5):
            recorder.record(POD, **FAILED)
            await sent(recorder)
        for number in range(3):
            recorder.record(ObjectReference(name=f"pod-{number}"), **FAILED)
        await sent(recorder)
    assert [patch["series"]["count"] for patch in patches(accepting)] == [2, 5]
    assert len(recorder._series) == 2


async def test_an_absent_server_is_tried_twelve_times_and_then_given_up(client, clock, server, monkeypatch):
    tries = 0

    async def away(*_: Any, **__: Any) -> bytes:
        nonlocal tries
        tries += 1
        raise Unreachable("away")

    monkeypatch.setattr(client.transport, "request", away)
    recorder = EventRecorder(client, controller="c", clock=clock)
    recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert (tries, recorder.dropped) == (12, 1)
    assert clock.slept == [10.0] * 11


async def test_an_event_that_the_server_refuses_is_dropped_and_not_tried_again(recorder, server):
    server.lists.append((403, {"message": "events is forbidden"}))
    recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert recorder.dropped == 1
    assert len(server.requests) == 1


async def test_an_event_that_is_there_already_is_written(recorder, server):
    server.lists += [(409, {"reason": "AlreadyExists"}), {}]
    recorder.record(POD, **FAILED)
    recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert recorder.dropped == 0
    assert patches(server)[0]["series"]["count"] == 2


async def test_a_server_without_the_group_gets_core_events(recorder, server, time):
    async def respond(request):
        return server.plain((404, {}) if request.path.startswith("/apis/events.k8s.io") else {})

    server.respond = respond
    for _ in range(2):
        recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    (path, created), (patched, count) = server.requested("POST")[-1], server.requested("PATCH")[-1]
    assert path == "/api/v1/namespaces/shop/events"
    assert (created["message"], created["count"], created["source"]) == (
        "0/3 nodes are available", 1, {"component": "default-scheduler"},
    )  # fmt: skip
    assert created["involvedObject"]["resourceVersion"] == "7"
    assert patched.startswith(path)
    assert count["count"] == 2


async def test_a_namespace_that_is_gone_is_no_reason_to_leave_the_group(recorder, server):
    server.lists += [(404, {"message": 'namespaces "shop" not found'}), {"kind": "APIResourceList"}, {}]
    recorder.record(POD, **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    recorder.record(ObjectReference(namespace="other", name="x"), **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert recorder.dropped == 1
    assert server.requested("POST")[-1][0] == "/apis/events.k8s.io/v1/namespaces/other/events"


async def test_what_is_not_written_in_time_at_the_end_is_counted(recorder, server):
    async def respond(request):
        await asyncio.Event().wait()

    server.respond = respond
    for number in range(20):
        recorder.record(ObjectReference(name=f"pod-{number}"), **FAILED)
    await recorder.flush(0.05)
    assert recorder.dropped == 20


async def test_flush_finishes_what_a_cancelled_run_had_in_hand(recorder, server):
    began = asyncio.Event()

    async def never(request):
        began.set()
        await asyncio.Event().wait()

    async def respond(request):
        return server.plain({})

    server.respond = never
    async with running(recorder):
        recorder.record(POD, **FAILED)
        await began.wait()
    server.respond = respond
    await recorder.flush(PATIENCE_SECONDS)
    assert len(server.requests) == 2
    assert recorder.dropped == 0


async def test_a_name_too_long_for_an_event_is_replaced(recorder, accepting):
    recorder.record(ObjectReference(name="x" * 250), **FAILED)
    await recorder.flush(PATIENCE_SECONDS)
    assert len(accepting.requests[0][2]["metadata"]["name"]) == 36


@given(st.text(max_size=8), st.sampled_from("aé☃😀"), st.integers(min_value=0, max_value=1_100))
def test_a_note_has_at_most_1024_bytes_and_keeps_whole_characters(start: str, filler: str, times: int) -> None:
    note = start + filler * times
    short = shortened(note)
    if len(note.encode()) <= 1_024:
        assert short == note
    else:
        assert short.endswith(" ...")
        assert 1_024 - 3 <= len(short.encode()) <= 1_024
        assert note.startswith(short.removesuffix(" ..."))


def test_text_that_is_no_unicode_does_not_stop_an_event() -> None:
    assert shortened("a\udc80b") == "a?b"


def test_a_long_note_is_cut_as_upstream_cuts_it() -> None:
    assert shortened("x" * 1_024) == "x" * 1_024
    assert shortened("x" * 1_025) == "x" * 1_020 + " ..."
