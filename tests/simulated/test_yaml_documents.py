"""YAML as kubectl reads it."""

from __future__ import annotations

import pytest

from mooring.simulated.yaml_documents import read_yaml, shown

SCALARS = {
    "5": 5,
    "-3": -3,
    "0x1f": 31,
    "0o777": 511,
    "0777": 511,
    "1e3": 1000,
    "2.5": 2.5,
    "12:30:45": "12:30:45",
    "2024-01-01": "2024-01-01",
    "=": "=",
    "yes": True,
    "y": True,
    "off": False,
    '"y"': "y",
    '"5"': "5",
    "~": None,
    "500m": "500m",
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items())
def test_scalars(text, value):
    [document] = read_yaml(f"a: {text}", "file")
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)


def test_empty_documents_are_left_out():
    assert [document.value for document in read_yaml("---\n---\na: 1\n---\n", "file")] == [{"a": 1}]


def test_keys_are_always_text():
    assert read_yaml("1: a\ntrue: b", "file")[0].value == {"1": "a", "true": "b"}


def test_anchors_and_merges_are_followed():
    [document] = read_yaml("base: &base {a: 1, b: 2}\nmore:\n  <<: *base\n  b: 3", "file")
    assert document.value["more"] == {"a": 1, "b": 3}


def test_lines_are_known():
    [document] = read_yaml("a: 1\nb:\n- c: 2\n- d:\n    e: 3\n", "file")

    assert document.line_of(("b", 1, "d", "e")) == 5
    assert document.line_of(("b", 0, "missing")) == 3
    assert document.within(("b", 1)).line_of(("d",)) == 4


def test_paths_read_as_in_kubernetes():
    assert shown(("spec", "taints", 0, "effect")) == "spec.taints[0].effect"
