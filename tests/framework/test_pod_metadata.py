"""What annotations and labels may be that plugins write to pods."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mooring.base.errors import Fault
from mooring.framework.pod_metadata import MOST_ANNOTATION_BYTES, BindingMetadata, check_metadata, check_size

GOOD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "an annotation with any text": {"annotations": {"example.com/devices": '{"gpu": [0, 1]}\n'}},
    "an annotation with capitals in its prefix": {"annotations": {"Example.com/Devices": "0"}},
    "an empty annotation": {"annotations": {"devices": ""}},
    "a label": {"labels": {"example.com/rack": "r-12"}},
    "an empty label": {"labels": {"rack": ""}},
    "removed ones": {"annotations": {"devices": None}, "labels": {"rack": None}},
}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a key with a blank": ({"annotations": {"my devices": "0"}}, 'annotation "my devices": name part must consist of'),
    "a key without a name": ({"annotations": {"example.com/": "0"}}, "name part must be non-empty"),
    "a number": ({"annotations": {"devices": 3}}, "annotation 'devices': 3 must be text"),
    "a key that is no text": ({"annotations": {3: "devices"}}, "annotation 3: 'devices' must be text"),
    "a label with a blank": ({"labels": {"rack": "r 12"}}, 'label "rack": "r 12": a valid label must be'),
    "a label that is too long": ({"labels": {"rack": "r" * 64}}, "must be no more than 63 bytes"),
    "a label key with a capital prefix": ({"labels": {"Example.com/rack": "r"}}, "prefix part a lowercase RFC 1123"),
}


def metadata(annotations: Any = None, labels: Any = None) -> tuple[Any, Any]:
    return annotations or {}, labels or {}


@pytest.mark.parametrize("given", GOOD.values(), ids=GOOD.keys())
def test_a_pod_can_have(given):
    check_metadata(*metadata(**given))


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD.keys())
def test_a_pod_cannot_have(given, message):
    with pytest.raises(Fault, match=re.escape(message)):
        check_metadata(*metadata(**given))
    with pytest.raises(Fault, match=re.escape(message)):
        BindingMetadata().add("Mine", *metadata(**given))


def test_every_problem_is_named():
    with pytest.raises(Fault, match=r'annotation "a b": .*; label "c": "d e": '):
        check_metadata({"a b": "x"}, {"c": "d e"})


def test_annotations_have_a_limit_in_bytes():
    check_size({"é": "x" * (MOST_ANNOTATION_BYTES - 2)})
    with pytest.raises(Fault, match="262145 bytes of annotations; 262144 are allowed"):
        check_size({"é": "x" * (MOST_ANNOTATION_BYTES - 1)})


def test_plugins_add_to_what_others_added():
    added = BindingMetadata()
    added.add("A", {"a": "1"}, {"l": "1"})
    added.add("B", {"b": "2", "a": "1"}, {})
    added.add("A", {}, {"l": "3"})
    assert (added.annotations, added.labels) == ({"a": "1", "b": "2"}, {"l": "3"})
    assert added.plugins == ["A", "B"]


def test_two_values_for_one_key_name_both_plugins_and_change_nothing():
    added = BindingMetadata()
    added.add("A", {"zone": "1"}, {})
    with pytest.raises(Fault, match='annotation "zone": plugin A has set it to "1", B to "2"'):
        added.add("B", {"other": "x", "zone": "2"}, {"l": "1"})
    assert (added.annotations, added.labels, added.plugins) == ({"zone": "1"}, {}, ["A"])
