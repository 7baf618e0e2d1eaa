"""The store: revisions, the watch cache, and watches that fall behind."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver import storage
from mooring.apiserver.documents import identity
from mooring.apiserver.status import StatusError
from mooring.apiserver.storage import Store, StoredObject


def an_object(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def test_every_write_takes_the_next_revision_of_the_whole_store():
    store = Store()
    first = store.create("pods", an_object("a"))
    second = store.create("nodes", an_object("b"))
    third = store.delete("pods", first)
    assert [second.revision - first.revision, third.revision - second.revision] == [1, 1]
    assert third.document["metadata"]["resourceVersion"] == str(store.revision)
    assert first.document["metadata"]["resourceVersion"] == str(first.revision)


def test_objects_come_in_order_of_namespace_and_name():
    store = Store()
    for namespace, name in (("b", "1"), ("a", "2"), ("a", "1"), ("ab", "0")):
        store.create("pods", {"metadata": {"name": name, "namespace": namespace}})
    assert [key for key, _ in store.scan("pods")] == [("a", "1"), ("a", "2"), ("ab", "0"), ("b", "1")]
    assert [key for key, _ in store.scan("pods", "a")] == [("a", "1"), ("a", "2")]
    assert [key for key, _ in store.scan("pods", None, ("a", "2"))] == [("ab", "0"), ("b", "1")]


async def test_a_watch_from_a_revision_begins_with_what_came_after_it():
    store = Store()
    since = store.create("pods", an_object("a")).revision
    store.create("pods", an_object("b"))
    watch = store.watch("pods", since)
    assert [event.stored.document["metadata"]["name"] for event in await watch.next_batch()] == ["b"]


async def test_a_watch_that_does_not_read_is_ended_before_memory_fills(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storage, "WATCH_CACHE_EVENTS", 3)
    store = Store()
    watch = store.watch("pods", None)
    for number in range(5):
        store.create("pods", an_object(str(number)))
    assert watch.ended
    assert watch.failure is not None
    assert watch.failure.code == 410
    with pytest.raises(StatusError, match="too old resource version"):
        store.watch("pods", 1)


def test_an_overtaken_version_can_still_be_encoded():
    store = Store()
    old = store.create("pods", an_object("a", colour="red"))
    line = store.collection("pods").watch_cache[0].line("ADDED", identity)
    store.update("pods", an_object("a", colour="blue"), old)
    store.collection("pods").watch_cache[0].drop_encoded()
    assert store.collection("pods").watch_cache[0].line("ADDED", identity) == line


def test_a_view_is_made_once():
    made: list[int] = []

    def view(document: dict[str, Any]) -> dict[str, Any]:
        made.append(1)
        return {**document, "seen": True}

    stored = StoredObject(an_object("a"), 1)
    assert stored.converted(view) == stored.converted(view)
    assert (len(made), stored.converted(view)[0]["seen"]) == (1, True)
