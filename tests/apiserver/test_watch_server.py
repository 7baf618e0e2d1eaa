"""Watches: initial events, changes with selectors, bookmarks, and their end."""

from __future__ import annotations

import asyncio

import pytest
from tests.apiserver.builders import PODS, a_binding, a_config_map, a_pod
from tests.apiserver.conftest import Client

from mooring.apiserver import storage
from mooring.base.clock import ManualClock

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_watch_without_a_revision_begins_with_what_is_there(api: Client):
    await api.post(PODS, a_pod("a"))
    watching = await api.watch(PODS)
    await api.post(PODS, a_pod("b"))
    assert await watching.seen(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_from_a_lists_revision_misses_nothing_and_repeats_nothing(api: Client):
    await api.post(PODS, a_pod("a"))
    revision = (await api.get(PODS)).body["metadata"]["resourceVersion"]
    await api.post(PODS, a_pod("b"))
    watching = await api.watch(f"{PODS}?resourceVersion={revision}")
    await api.patch(f"{PODS}/b", {"metadata": {"labels": {"x": "y"}}})
    await api.delete(f"{PODS}/a")
    assert await watching.seen(3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


async def test_revisions_grow_and_a_deletion_has_its_own(api: Client):
    watching = await api.watch(PODS)
    await api.post(PODS, a_pod("a"))
    await api.delete(f"{PODS}/a")
    added, deleted = await watching.next(), await watching.next()
    assert added is not None
    assert deleted is not None
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (added, deleted)]
    assert versions[0] < versions[1]


async def test_an_object_that_leaves_the_selection_is_deleted_for_that_watch(api: Client):
    unbound = await api.watch("/api/v1/pods?fieldSelector=spec.nodeName%3D")
    bound = await api.watch("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1")
    red = await api.watch(f"{PODS}?labelSelector=colour%3Dred")
    await api.post(PODS, a_pod("a", labels={"colour": "red"}))
    await api.post(f"{PODS}/a/binding", a_binding("a"))
    await api.patch(f"{PODS}/a", {"metadata": {"labels": {"colour": "blue"}}})
    assert await unbound.seen(2) == [("ADDED", "a"), ("DELETED", "a")]
    assert await bound.seen(2) == [("ADDED", "a"), ("MODIFIED", "a")]
    assert await red.seen(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_of_one_namespace_does_not_see_another(api: Client):
    watching = await api.watch("/api/v1/namespaces/kube-public/configmaps")
    await api.post(MAPS, a_config_map("here"))
    there = a_config_map("there")
    there["metadata"]["namespace"] = "kube-public"
    await api.post("/api/v1/namespaces/kube-public/configmaps", there)
    assert await watching.seen(1) == [("ADDED", "there")]


async def test_an_update_that_changes_nothing_is_no_event(api: Client):
    await api.post(MAPS, a_config_map("m", a="1"))
    watching = await api.watch(f"{MAPS}?resourceVersion={api.server.registry.store.revision}")
    await api.patch(f"{MAPS}/m", {"data": {"a": "1"}}, "merge")
    await api.patch(f"{MAPS}/m", {"data": {"a": "2"}}, "merge")
    event = await watching.next()
    assert event is not None
    assert event["object"]["data"] == {"a": "2"}


async def test_a_revision_that_history_has_lost_is_gone(api: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storage, "WATCH_CACHE_EVENTS", 2)
    for number in range(5):
        await api.post(MAPS, a_config_map(f"m{number}"))
    response = await api.get(f"{MAPS}?watch=1&resourceVersion=2")
    assert (response.code, response.body["reason"]) == (410, "Expired")
    assert response.message.startswith("too old resource version: 2 (")


async def test_a_revision_of_another_servers_life_is_gone(api: Client):
    assert (await api.get(f"{MAPS}?watch=1&resourceVersion=999999")).code == 410


async def test_a_watch_ends_after_its_timeout(api: Client, clock: ManualClock):
    watching = await api.watch(f"{PODS}?timeoutSeconds=5")
    clock.advance(5)
    assert await watching.next() is None


async def test_bookmarks_carry_the_revision_when_nothing_happens(api: Client, clock: ManualClock):
    watching = await api.watch(f"{PODS}?allowWatchBookmarks=true&resourceVersion={api.server.registry.store.revision}")
    await api.post(MAPS, a_config_map("elsewhere"))
    clock.advance(60)
    event = await watching.next()
    assert event is not None
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == str(api.server.registry.store.revision)


async def test_a_streaming_list_ends_with_a_marked_bookmark(api: Client):
    await api.post(PODS, a_pod("a"))
    watching = await api.watch(
        f"{PODS}?sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    )
    assert await watching.seen(1) == [("ADDED", "a")]
    mark = await watching.next()
    assert mark is not None
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_initial_events_without_a_revision_match_are_refused(api: Client):
    response = await api.get(f"{PODS}?watch=1&sendInitialEvents=true")
    assert response.code == 422
    assert "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan" in response.message


async def test_many_watchers_share_one_encoding(api: Client):
    watchings = await asyncio.gather(*(api.watch(PODS) for _ in range(3)))
    await api.post(PODS, a_pod("a"))
    assert [await watching.seen(1) for watching in watchings] == [[("ADDED", "a")]] * 3
    event = api.server.registry.store.collection("pods").watch_cache[-1]
    assert len(event._lines) == 1
