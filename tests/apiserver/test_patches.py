"""The three kinds of patch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.builders import PODS, a_pod
from tests.apiserver.conftest import Client

from mooring.apiserver.json_patch import json_patch
from mooring.apiserver.patches import merge_patch, strategic_patch
from mooring.apiserver.status import StatusError

POD = "io.k8s.api.core.v1.Pod"
DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=2), plain, max_size=4)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


JSON_MISTAKES = {
    "a test that fails": ({"op": "test", "path": "/a", "value": 2}, "test /a: the value there is another"),
    "a removal of nothing": (
        {"op": "remove", "path": "/c"},
        "remove /c: can't remove a non-existent object 'c'",
    ),
    "an addition to nothing": ({"op": "add", "path": "/c/d", "value": 1}, "add /c/d: the path leads nowhere"),
    "an unknown operation": ({"op": "jump", "path": "/a"}, "jump /a: Unknown operation 'jump'"),
}


@pytest.mark.parametrize(("operation", "sentence"), JSON_MISTAKES.values(), ids=JSON_MISTAKES.keys())
def test_a_json_patch_that_cannot_be_applied_names_the_operation(operation: dict[str, Any], sentence: str):
    document = {"a": 1}
    with pytest.raises(StatusError) as refused:
        json_patch(document, [{"op": "add", "path": "/b", "value": 1}, operation])
    assert refused.value.code == 422
    assert refused.value.message == (
        f"the server rejected our request due to an error in our request: operation 1: {sentence}"
    )
    assert document == {"a": 1}


@given(objects, objects)
def test_a_merge_patch_applied_twice_changes_nothing_more(document: dict[str, Any], patch: dict[str, Any]):
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(objects)
def test_a_merge_patch_onto_nothing_is_the_patch_without_its_nulls(patch: dict[str, Any]):
    assert merge_patch({}, patch) == without_nulls(patch)


@given(objects, objects)
def test_a_patch_leaves_the_old_document_alone(document: dict[str, Any], patch: dict[str, Any]):
    before = repr(document)
    merge_patch(document, patch)
    assert repr(document) == before


def spec(document: dict[str, Any], patch: dict[str, Any], type_name: str = POD) -> dict[str, Any]:
    patched: dict[str, Any] = strategic_patch({"spec": document}, {"spec": patch}, type_name)["spec"]
    return patched


STRATEGIC = {
    "lists merge by their key": (
        {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
        {"containers": [{"name": "b", "image": "2"}]},
        {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]},
    ),
    "an unknown key is appended": (
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "b"}]},
        {"containers": [{"name": "a"}, {"name": "b"}]},
    ),
    "an item is deleted by its key": (
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"containers": [{"$patch": "delete", "name": "a"}]},
        {"containers": [{"name": "b"}]},
    ),
    "a list is replaced on demand": (
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"containers": [{"$patch": "replace"}, {"name": "c"}]},
        {"containers": [{"name": "c"}]},
    ),
    "a list without a key is replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "null removes a field": ({"nodeName": "x", "hostNetwork": True}, {"nodeName": None}, {"hostNetwork": True}),
    "an object is replaced on demand": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "replace", "b": "2"}},
        {"nodeSelector": {"b": "2"}},
    ),
    "only retained keys stay": (
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
    ),
    "the order of items is set": (
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
        {"containers": [{"name": "b"}, {"name": "a"}]},
    ),
}


@pytest.mark.parametrize(("document", "patch", "expected"), STRATEGIC.values(), ids=STRATEGIC.keys())
def test_strategic_merge(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]):
    assert spec(document, patch) == expected


def test_lists_of_texts_merge_and_shrink_where_the_type_has_a_merge_strategy():
    metadata = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic_patch(metadata, {"metadata": {"finalizers": ["c"]}}, POD)
    assert added["metadata"]["finalizers"] == ["a", "b", "c"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_patch(metadata, patch, POD)["metadata"]["finalizers"] == ["b"]


def test_a_strategy_change_drops_the_old_parameters():
    document = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert spec(document, patch, DEPLOYMENT) == {"strategy": {"type": "Recreate"}}


def test_an_item_without_its_key_is_refused():
    with pytest.raises(StatusError, match="does not contain declared merge key: name"):
        spec({"containers": []}, {"containers": [{"image": "1"}]})


def test_a_json_patch_applies_in_order_and_stops_at_a_failed_test():
    patched = json_patch({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}, {"op": "remove", "path": "/a/0"}])
    assert patched == {"a": [2]}
    for wrong in ([{"op": "test", "path": "/a", "value": 3}], [{"op": "remove", "path": "/none"}], [{"op": "grow"}]):
        with pytest.raises(StatusError) as refused:
            json_patch({"a": 1}, wrong)
        assert refused.value.code == 422


async def test_server_side_apply_is_refused_with_what_to_do(api: Client):
    response = await api.call("PATCH", f"{PODS}/web", a_pod(), Content_Type="application/apply-patch+yaml")
    assert (response.code, response.body["reason"]) == (415, "UnsupportedMediaType")
    assert "use kubectl apply without --server-side" in response.message


async def test_a_patch_of_an_unknown_kind_names_those_there_are(api: Client):
    response = await api.call("PATCH", f"{PODS}/web", {}, Content_Type="application/json")
    assert (response.code, "application/strategic-merge-patch+json" in response.message) == (415, True)


async def test_a_patch_of_what_is_not_there_is_not_found(api: Client):
    assert (await api.patch(f"{PODS}/web", {})).code == 404
