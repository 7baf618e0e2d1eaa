"""Objects in memory and their indexes, whatever the code of a plugin makes of them."""

from typing import Any

import pytest

from mooring.framework.kept import KeptObjects
from mooring.objects import ObjectMeta
from mooring.objects.core import Node


def a_node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def by_zone(node: Node) -> list[Any]:
    return [node.metadata.labels["zone"]]


def by_list(node: Node) -> list[Any]:
    return [[node.name]] if node.name == "odd" else [node.metadata.labels.get("zone")]


@pytest.mark.parametrize("keys", [by_zone, by_list], ids=["raises", "is no key"])
def test_an_object_whose_key_cannot_be_told_is_left_out_of_the_index_alone(keys, capsys):
    """Isolation: a plugin's own index must not end the watch."""
    objects: KeptObjects[Node] = KeptObjects()
    index = objects.indexed(keys)
    odd, good = a_node("odd"), a_node("good", zone="a")
    for node in (odd, good):
        objects.keep(node)
    assert list(index.at("a")) == [good]
    assert set(objects.keys()) == {"odd", "good"}
    said = capsys.readouterr().err
    assert keys.__qualname__ in said
    assert 'object="odd"' in said
    objects.keep(a_node("odd", zone="a"))
    objects.drop("odd")
    objects.drop("good")
    assert list(index.at("a")) == []


def test_an_index_that_nobody_reads_is_not_kept_up():
    objects: KeptObjects[Node] = KeptObjects()
    index = objects.indexed(by_zone)
    objects.keep(a_node("one", zone="a"))
    assert [node.name for node in index.at("a")] == ["one"]
    del index
    assert len(objects._indexes) == 0
