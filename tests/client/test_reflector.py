"""List and watch: nothing is lost, whatever happens on the way."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.conftest import until

from mooring.base import log
from mooring.base.clock import ManualClock
from mooring.client import ApiClient, Connection, Reflector
from mooring.client.outages import REMINDER_SECONDS
from mooring.client.reflector import AWAY_BACKOFF, BACKOFF, WATCH_SECONDS
from mooring.objects import CustomResource, Pod
from mooring.objects.object_store import Present


class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Cluster", kw_only=True):
    spec: dict[str, int]


def a_pod(name: str, version: int = 1, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec}


def a_list(*pods: dict[str, Any], version: int = 10, more: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(pods)}


def event(type: str, object: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": type, "object": object}) + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def a_status(code: int, reason: str = "", message: str = "no") -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


@asynccontextmanager
async def reflecting(reflector: Reflector[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def watched_from(server) -> list[str]:
    return [
        part.removeprefix("resourceVersion=")
        for path, _ in server.requested("GET")
        if "watch=true" in path
        for part in path.split("&")
        if part.startswith("resourceVersion=")
    ]


@pytest.fixture
def errors():
    stream = io.StringIO()
    before = log._settings.stream
    log.configure(stream=stream)
    yield stream
    log._settings.stream = before


async def test_everything_there_is_comes_first_and_then_every_change(client, server, feed, watch):
    server.lists.append(a_list(a_pod("a"), a_pod("b")))
    server.watches.append(
        watch(event("ADDED", a_pod("c", 11)), event("MODIFIED", a_pod("a", 12)), event("DELETED", a_pod("b", 13)))
    )
    reflector = Reflector(client, Pod, feed)
    async with reflecting(reflector):
        await feed.receives(("listed", ["a", "b"]), ("changed", "c"), ("changed", "a"), ("deleted", "b"))
        assert reflector.synced.is_set()
        assert reflector.problem is None


async def test_selectors_and_namespace_are_sent_with_list_and_watch(client, server, feed):
    server.lists.append(a_list())
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    reflector = Reflector(client, Pod, feed, namespace="shop", field_selector=selector, label_selector="app=web")
    async with reflecting(reflector):
        await server.held.wait()
    for path, _ in server.requested("GET"):
        assert path.startswith("/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb&fieldSelector=status.phase%21%3DS")


async def test_a_long_list_is_taken_page_by_page(client, server, feed):
    server.lists += [a_list(a_pod("a"), more="next page"), a_list(a_pod("b"))]
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["a", "b"]))
    first, second, *_ = server.requested("GET")
    assert first[0] == "/api/v1/pods?limit=500"
    assert second[0] == "/api/v1/pods?limit=500&continue=next+page"


async def test_a_list_that_expires_between_pages_is_taken_whole(client, server, feed):
    server.lists += [
        a_list(a_pod("a"), more="t"),
        (410, a_status(410, "Expired")),
        a_list(a_pod("a"), a_pod("b")),
    ]
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["a", "b"]))
    assert server.requested("GET")[2][0] == "/api/v1/pods"


async def test_a_watch_that_ends_is_resumed_from_the_last_change(client, server, feed, watch):
    server.lists.append(a_list(version=10))
    server.watches += [watch(event("ADDED", a_pod("a", 11))), watch(event("ADDED", a_pod("b", 12)))]
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("changed", "a"), ("changed", "b"))
        await server.held.wait()
    assert watched_from(server) == ["10", "11", "12"]


async def test_a_bookmark_moves_the_place_to_resume_from(client, server, feed, watch):
    server.lists.append(a_list(version=10))
    server.watches += [watch(bookmark(40))]
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert watched_from(server) == ["10", "40"]


async def test_a_watch_cut_in_the_middle_of_a_line_loses_nothing(client, server, feed, watch):
    server.lists.append(a_list(version=10))
    whole, half = event("ADDED", a_pod("a", 11)), event("ADDED", a_pod("b", 12))
    server.watches += [watch(whole + half[:30], then="cut"), watch(half)]
    reflector = Reflector(client, Pod, feed)
    async with reflecting(reflector):
        await feed.receives(("listed", []), ("changed", "a"), ("changed", "b"))
        await server.held.wait()
        assert reflector.problem is None
    assert watched_from(server) == ["10", "11", "12"]


async def test_a_line_far_longer_than_any_buffer_is_one_event(client, server, feed, watch):
    server.lists.append(a_list())
    big = a_pod("big", 11)
    big["metadata"]["annotations"] = {"filler": "x" * 3_000_000}
    line = event("ADDED", big)
    server.watches.append(watch(*(line[at : at + 70_000] for at in range(0, len(line), 70_000))))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("changed", "big"))


@pytest.mark.parametrize("how", ["as an event", "as the response"])
async def test_a_place_the_server_has_forgotten_means_a_new_list_at_once(client, server, feed, clock, watch, how):
    server.lists += [a_list(a_pod("a")), a_list(a_pod("b"), version=90)]
    gone = a_status(410, "Expired", "too old resource version: 10 (80)")
    server.watches.append(watch(event("ERROR", gone)) if how == "as an event" else (410, gone))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["a"]), ("listed", ["b"]))
        await server.held.wait()
    assert watched_from(server) == ["10", "90"]
    assert clock.slept == []


async def test_a_server_that_always_expires_is_not_listed_in_a_busy_loop(client, server, feed, clock, watch):
    server.lists += [a_list() for _ in range(4)]
    server.watches += [watch(event("ERROR", a_status(410))) for _ in range(3)]
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert len(clock.slept) == 2
    assert clock.slept[0] < clock.slept[1]


async def test_a_watch_from_the_future_means_a_new_list(client, server, feed, watch):
    """The server was replaced by one that has seen less."""
    server.lists += [a_list(version=500), a_list(version=3)]
    server.watches.append((504, a_status(504, "Timeout", "Too large resource version: 500, current: 3")))
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert watched_from(server) == ["500", "3"]


async def test_failures_are_retried_ever_more_slowly_up_to_a_limit(client, server, feed, clock):
    server.lists += [(500, a_status(500))] * 12 + [a_list()]
    reflector = Reflector(client, Pod, feed)
    async with reflecting(reflector):
        await feed.receives(("listed", []))
        assert reflector.problem is None
    assert clock.slept[0] <= 0.5
    assert all(BACKOFF.limit_seconds / 2 <= seconds <= BACKOFF.limit_seconds for seconds in clock.slept[5:])


async def test_those_who_fail_together_do_not_come_back_together(client, server, feed, clock):
    server.lists += [(500, a_status(500))] * 20 + [a_list()]
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []))
    assert len(set(clock.slept[6:])) > 10


async def test_a_server_that_is_too_busy_for_a_watch_is_retried_after_its_delay(client, server, feed, clock):
    server.lists.append(a_list())
    server.watches.append((429, a_status(429, "TooManyRequests"), {"Retry-After": "17"}))
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert clock.slept == [17.0]


async def test_a_watch_is_to_end_after_some_minutes_and_not_all_at_once(client, server, feed, watch):
    server.lists.append(a_list())
    server.watches += [watch(bookmark(20 + number)) for number in range(20)]
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    requested = [
        int(part.removeprefix("timeoutSeconds="))
        for path, _ in server.requested("GET")
        for part in path.split("&")
        if part.startswith("timeoutSeconds=")
    ]
    assert all(WATCH_SECONDS <= seconds <= 2 * WATCH_SECONDS for seconds in requested)
    assert len(set(requested)) > 5


async def test_success_makes_the_next_retry_quick_again(client, server, feed, clock, watch):
    server.lists += [(500, a_status(500))] * 8 + [a_list()]
    server.watches += [watch(event("ADDED", a_pod("a", 11))), (500, a_status(500)), watch(then="hold")]
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert len(clock.slept) == 9
    assert clock.slept[-1] <= 0.5


async def test_a_watch_that_keeps_ending_at_once_without_news_is_slowed_down(client, server, feed, clock, watch):
    server.lists.append(a_list())
    server.watches += [watch(), watch(), watch()]
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert len(clock.slept) == 3


async def test_watches_that_are_cut_again_and_again_are_resumed_soon_and_not_in_a_busy_loop(
    client, server, feed, clock, watch
):
    server.lists.append(a_list())
    server.watches += [watch(then="cut") for _ in range(12)]
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    pauses = [sum(parts) for parts in zip(clock.slept[::2], clock.slept[1::2], strict=True)]
    assert pauses[0] <= 0.1
    assert all(AWAY_BACKOFF.limit_seconds / 2 <= pause <= AWAY_BACKOFF.limit_seconds for pause in pauses[5:])


async def test_a_server_that_is_back_and_still_starts_is_retried_soon(
    fake, serve, authority, tmp_path, feed, clock, reserved
):
    away = fake()
    away.port = reserved.getsockname()[1]
    async with ApiClient(away.connection(), clock=clock) as client:
        reflector = Reflector(client, Pod, feed)
        async with reflecting(reflector):
            await until(lambda: len(clock.slept) > 40)
            away.lists += [(503, a_status(503)), a_list(a_pod("a"))]
            async with serve(away, authority.server_context(tmp_path), sock=reserved):
                await feed.receives(("listed", ["a"]))
    assert max(clock.slept) <= AWAY_BACKOFF.limit_seconds
    assert clock.slept[-1] <= 0.5


async def test_a_server_that_is_away_is_a_problem_until_it_is_back(
    fake, serve, authority, tmp_path, feed, clock, reserved
):
    away = fake()
    away.port = reserved.getsockname()[1]
    async with ApiClient(away.connection(), clock=clock) as client:
        reflector = Reflector(client, Pod, feed)
        async with reflecting(reflector):
            await until(lambda: reflector.problem is not None)
            assert f"127.0.0.1:{away.port} (from a test): connection refused" in str(reflector.problem)
            away.lists.append(a_list(a_pod("a")))
            async with serve(away, authority.server_context(tmp_path), sock=reserved):
                await feed.receives(("listed", ["a"]))
                assert reflector.problem is None


async def test_a_kind_that_the_server_lacks_is_a_problem_until_it_is_there(client, server, feed):
    arrived = asyncio.Event()
    reflector: Reflector[Quota] = Reflector(client, Quota, feed)

    async def respond(request):
        if not arrived.is_set():
            return server.plain((404, a_status(404, "NotFound", "the server could not find the requested resource")))
        server.respond = None
        return server.plain(a_list({"metadata": {"name": "team"}, "spec": {}}))

    server.respond = respond
    async with reflecting(reflector):
        await until(lambda: reflector.problem is not None)
        assert reflector.problem == (
            "the server has no quotas.example.com (v1); is its CustomResourceDefinition installed?"
        )
        assert not reflector.synced.is_set()
        arrived.set()
        await feed.receives(("listed", ["team"]))
        assert reflector.problem is None


async def test_a_built_in_kind_that_is_missing_is_not_blamed_on_a_definition(waiting_client, server, feed):
    server.lists += [(404, a_status(404))]
    assert (
        await problem_of(Reflector(waiting_client, Pod, feed))
        == "the server has no pods (v1); is that API enabled there?"
    )


async def test_a_built_in_kind_that_is_missing_has_no_objects(waiting_client, server, feed):
    server.lists += [(404, a_status(404))]
    reflector = Reflector(waiting_client, Pod, feed)
    await problem_of(reflector)
    assert reflector.is_listed
    await feed.receives(("listed", []))


async def test_a_custom_kind_that_is_missing_is_waited_for(waiting_client, server, feed):
    server.lists += [(404, a_status(404))]
    reflector: Reflector[Quota] = Reflector(waiting_client, Quota, feed)
    await problem_of(reflector)
    assert not reflector.is_listed
    assert feed.received.empty()


async def test_a_kind_that_goes_away_takes_its_objects_with_it(waiting_client, server, feed):
    server.lists += [a_list({"metadata": {"name": "team"}, "spec": {}}), (404, a_status(404))]
    server.watches.append((404, a_status(404)))
    reflector: Reflector[Quota] = Reflector(waiting_client, Quota, feed)
    assert "CustomResourceDefinition" in await problem_of(reflector)
    await feed.receives(("listed", ["team"]), ("listed", []))
    assert reflector.synced.is_set()


async def test_a_forbidden_kind_names_the_rule_that_would_allow_it(waiting_client, server, feed):
    message = 'quotas.example.com is forbidden: User "ada" cannot list resource "quotas"'
    server.lists += [(403, a_status(403, "Forbidden", message))]
    problem = await problem_of(Reflector(waiting_client, Quota, feed))
    assert '{apiGroups: ["example.com"], resources: ["quotas"], verbs: ["list", "watch"]}' in problem
    assert 'User "ada"' in problem


async def test_rights_that_vanish_while_running_are_named_and_what_is_known_stays(server, feed, errors, watch):
    """RBAC is checked when a watch begins, not while it runs."""
    clock = ManualClock()
    refusal = (403, a_status(403, "Forbidden", 'User "u" cannot watch resource "pods" in API group ""'))
    server.lists.append(a_list(a_pod("a")))
    server.watches += [watch(event("ADDED", a_pod("b", 11))), *[refusal] * 40]
    async with ApiClient(server.connection(), clock=clock) as client:
        reflector = Reflector(client, Pod, feed)
        async with reflecting(reflector):
            await feed.receives(("listed", ["a"]), ("changed", "b"))
            await reflector.settled.wait()
            await until(lambda: reflector.problem is not None)
            assert reflector.problem is not None
            assert 'resources: ["pods"], verbs: ["list", "watch"]' in reflector.problem
            assert reflector.is_listed
            assert errors.getvalue().count("Failed to list/watch resource") == 1
            while errors.getvalue().count("Failed to list/watch resource") < 2:  # logged again, minutes later
                clock.advance(10)
                await asyncio.sleep(0.001)
            assert clock.monotonic() >= REMINDER_SECONDS


async def test_refused_credentials_name_where_they_came_from(waiting_client, server, feed):
    server.lists += [(401, a_status(401, "Unauthorized", "Unauthorized"))]
    problem = await problem_of(Reflector(waiting_client, Pod, feed))
    assert "does not accept the credentials (from a test)" in problem


async def test_an_object_of_the_wrong_shape_is_logged_and_the_others_go_on(client, server, feed, errors, watch):
    broken = a_pod("broken", 3, containers="none")
    server.lists.append(a_list(broken, a_pod("fine")))
    server.watches.append(watch(event("MODIFIED", broken), event("ADDED", a_pod("next", 11))))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["fine"]), ("changed", "next"))
    assert errors.getvalue().count("Skipping an object") == 1  # the same version is not reported twice
    for part in ('kind="pods"', 'object="shop/broken"', 'field="spec.containers"', "Expected `array`, got `str`"):
        assert part in errors.getvalue()


async def test_a_new_version_of_a_broken_object_is_reported_again(client, server, feed, errors, watch):
    server.lists.append(a_list(a_pod("broken", 3, containers=1)))
    server.watches.append(watch(event("MODIFIED", a_pod("broken", 11, containers=1)), event("ADDED", a_pod("z", 12))))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("changed", "z"))
        await server.held.wait()
    assert errors.getvalue().count("Skipping an object") == 2


async def test_the_watch_resumes_after_an_object_that_could_not_be_read(client, server, feed, errors, watch):
    server.lists.append(a_list())
    server.watches.append(watch(event("ADDED", a_pod("broken", 11, containers=1))))
    async with reflecting(Reflector(client, Pod, feed)):
        await server.held.wait()
    assert watched_from(server) == ["10", "11"]


async def test_an_object_that_broke_is_still_deleted(client, server, feed, errors, watch):
    server.lists.append(a_list(a_pod("a")))
    server.watches.append(watch(event("DELETED", a_pod("a", 11, containers=1))))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", ["a"]), ("deleted", "a"))


async def test_a_broken_object_that_cannot_even_be_deleted_by_name_means_a_new_list(
    client, server, feed, errors, watch
):
    server.lists += [a_list({"metadata": {"name": "team"}, "spec": {}}), a_list(version=12)]
    gone = {"metadata": {"name": "team", "resourceVersion": "11"}, "spec": "?"}
    server.watches.append(watch(event("DELETED", gone)))
    async with reflecting(Reflector(client, Quota, feed)):
        await feed.receives(("listed", ["team"]), ("listed", []))


async def test_a_line_that_is_no_event_means_a_new_list(client, server, feed, watch):
    server.lists += [a_list(), a_list(a_pod("a"))]
    server.watches.append(watch(b"<html>\n"))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("listed", ["a"]))


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize(
    "anonymous", [{}, {"metadata": {"resourceVersion": "11"}}, {"metadata": {"name": "a"}}], ids=lambda each: str(each)
)
async def test_an_object_without_identity_means_a_new_list(client, server, feed, watch, type_, anonymous):
    """To watch on from nowhere would begin now, and what came in between would be lost."""
    server.lists += [a_list(), a_list(a_pod("a"), version=20)]
    server.watches.append(watch(event(type_, anonymous)))
    async with reflecting(Reflector(client, Pod, feed)):
        await feed.receives(("listed", []), ("listed", ["a"]))
        await server.held.wait()
    assert watched_from(server) == ["10", "20"]


@given(
    names=st.lists(st.text("abc-é☃", min_size=1, max_size=8), max_size=5),
    cuts=st.lists(st.integers(min_value=0, max_value=1000), max_size=10),
)
def test_it_does_not_matter_how_the_network_cuts_the_stream(names: list[str], cuts: list[int]) -> None:
    stream = b"".join(event("ADDED", a_pod(name)) for name in names)
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})

    async def chunks() -> AsyncIterator[bytes]:
        for start, end in pairwise(edges):
            yield stream[start:end]

    class Names(list[str]):
        def found(self, object: Pod) -> None: ...
        def listed(self, present: Present) -> None: ...
        def deleted(self, object: Pod) -> None: ...
        def changed(self, object: Pod) -> None:
            self.append(object.name)

    async def received() -> list[str]:
        feed = Names()
        async with ApiClient(Connection(server="https://nowhere", source="a test")) as client:
            await Reflector(client, Pod, feed)._follow(chunks())
        return feed

    assert asyncio.run(received()) == names


async def problem_of(reflector: Reflector[Any]) -> str:
    """The first problem that the reflector logs."""
    async with reflecting(reflector):
        await until(lambda: reflector.problem is not None)
        return str(reflector.problem)
