"""Objects in memory and their indexes, whatever the code of a plugin makes of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lists import list_into

from mooring.objects import ObjectMeta
from mooring.objects.core import Node
from mooring.objects.object_store import IndexedStore, WatchedStore


def a_node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def by_zone(node: Node) -> list[Any]:
    return [node.metadata.labels["zone"]]


def by_list(node: Node) -> list[Any]:
    return [[node.name]] if node.name == "odd" else [node.metadata.labels.get("zone")]


@pytest.mark.parametrize("keys", [by_zone, by_list], ids=["raises", "is no key"])
def test_an_object_whose_key_cannot_be_computed_is_left_out_of_the_index_alone(keys, capsys):
    """Isolation: a plugin's own index must not end the watch."""
    objects: IndexedStore[Node] = IndexedStore()
    index = objects.indexed(keys)
    odd, good = a_node("odd"), a_node("good", zone="a")
    for node in (odd, good):
        objects.put(node)
    assert list(index.at("a")) == [good]
    assert set(objects.keys()) == {"odd", "good"}
    logged = capsys.readouterr().err
    assert keys.__qualname__ in logged
    assert 'object="odd"' in logged
    objects.put(a_node("odd", zone="a"))
    objects.discard("odd")
    objects.discard("good")
    assert list(index.at("a")) == []


def test_an_index_that_no_plugin_holds_is_not_kept_up():
    objects: IndexedStore[Node] = IndexedStore()
    index = objects.indexed(by_zone)
    objects.put(a_node("one", zone="a"))
    assert [node.name for node in index.at("a")] == ["one"]
    del index
    assert len(objects._indexes) == 0


class Recording(WatchedStore[Node]):
    """A store that records what it emits, and lets tests assume writes."""

    def __init__(self) -> None:
        super().__init__()
        self.emitted: list[tuple[str | None, str | None]] = []

    def emit(self, old: Node | None, new: Node | None) -> None:
        versions = [None if each is None else each.metadata.resource_version for each in (old, new)]
        self.emitted.append((versions[0], versions[1]))

    def assume(self, written: Node) -> None:
        if not self.is_outdated(written):
            self._assume(written)
            self._put(written)


def of_version(version: int, name: str = "node", uid: str = "uid") -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=uid, resource_version=str(version)))


def test_what_comes_changes_and_goes_is_emitted():
    store = Recording()
    store.changed(of_version(1))
    store.changed(of_version(2))
    store.deleted(of_version(3))
    store.deleted(of_version(3))
    assert store.emitted == [(None, "1"), ("1", "2"), ("2", None)]


def test_an_assumed_write_is_not_undone_by_what_the_watch_brings_from_before():
    store = Recording()
    store.changed(of_version(1))
    store.assume(of_version(5))
    store.changed(of_version(3))
    assert store.emitted == [(None, "1"), ("1", "5")]
    store.changed(of_version(5))
    store.changed(of_version(4))  # the watch alone goes back: a server that was restored from a backup
    assert store.emitted[2:] == [("5", "5"), ("5", "4")]


def test_a_write_that_the_watch_has_overtaken_is_outdated():
    store = Recording()
    store.changed(of_version(7))
    assert store.is_outdated(of_version(6))
    assert not store.is_outdated(of_version(6, uid="another"))
    assert not store.is_outdated(of_version(7))
    assert not store.is_outdated(of_version(1, name="unknown"))


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(st.tuples(st.sampled_from(["changed", "deleted", "assumed", "listed"]), NAMES), max_size=30)


@given(STEPS)
def test_after_a_list_the_store_holds_what_was_listed(steps: list[tuple[str, str]]) -> None:
    """Whatever was watched and assumed before; and what was emitted adds up to it."""
    store = Recording()
    index = store.indexed(lambda node: [node.name])
    for version, (step, name) in enumerate(steps, 1):
        node = of_version(version, name)
        if step == "assumed":
            store.assume(node)
        elif step == "listed":
            list_into(store, [node])
        else:
            getattr(store, step)(node)
    last = [of_version(100, "a"), of_version(101, "c")]
    list_into(store, last)
    assert {node.key: node.metadata.resource_version for node in store.all()} == {"a": "100", "c": "101"}
    assert [index.at(name) for name in ("a", "b", "c")] == [[last[0]], (), [last[1]]]
    added = sum(1 for old, _ in store.emitted if old is None)
    removed = sum(1 for _, new in store.emitted if new is None)
    assert added - removed == len(last)
