"""What goes over the wire: Go's field names out; anything that Go would read in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mooring.scheduler.extenders.wire import (
    FilterResult,
    MalformedResponse,
    MetaVictims,
    binding_args,
    filter_args,
    meta_preemption_args,
    preemption_args,
    read_binding,
    read_filter,
    read_priorities,
    read_victims,
)

POD, NODE = Raw(b'{"metadata":{"name":"web"},"spec":{"new":[1]}}'), Raw(b'{"metadata":{"name":"a"}}')

REQUESTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "nodes by name": (
        filter_args(POD, names=["a", "b"]),
        {"Pod": json.loads(bytes(POD)), "Nodes": None, "NodeNames": ["a", "b"]},
    ),
    "whole nodes": (
        filter_args(POD, nodes=[NODE]),
        {
            "Pod": json.loads(bytes(POD)),
            "Nodes": {"metadata": {}, "items": [json.loads(bytes(NODE))]},
            "NodeNames": None,
        },
    ),
    "a binding": (
        binding_args("web", "shop", "u-1", "a"),
        {"PodName": "web", "PodNamespace": "shop", "PodUID": "u-1", "Node": "a"},
    ),
    "victims by uid": (
        meta_preemption_args(POD, {"a": (["u-1", "u-2"], 1)}),
        {
            "Pod": json.loads(bytes(POD)),
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u-1"}, {"UID": "u-2"}], "NumPDBViolations": 1}},
        },
    ),
    "whole victims": (
        preemption_args(POD, {"a": ([POD], 0)}),
        {
            "Pod": json.loads(bytes(POD)),
            "NodeNameToVictims": {"a": {"Pods": [json.loads(bytes(POD))], "NumPDBViolations": 0}},
            "NodeNameToMetaVictims": None,
        },
    ),
}


@pytest.mark.parametrize(("written", "meant"), REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request(written, meant):
    assert json.loads(written) == meant


RESPONSES: dict[str, tuple[str, FilterResult]] = {
    "names": ('{"NodeNames": ["a"]}', FilterResult(node_names=("a",))),
    "whole nodes, of which only the names count": (
        '{"Nodes": {"kind": "NodeList", "items": [{"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {}}]}}',
        FilterResult(nodes=("a",)),
    ),
    "reasons": (
        '{"NodeNames": [], "FailedNodes": {"a": "hot"}, "FailedAndUnresolvableNodes": {"B": "leaks"}}',
        FilterResult(node_names=(), failed={"a": "hot"}, failed_and_unresolvable={"B": "leaks"}),
    ),
    "names of fields in any case, names of nodes as they are": (
        '{"nodenames": ["A"], "FAILEDNODES": {"B": "hot"}, "error": ""}',
        FilterResult(node_names=("A",), failed={"B": "hot"}),
    ),
    "whole nodes in any case": ('{"nodes": {"Items": [{"METADATA": {"Name": "a"}}]}}', FilterResult(nodes=("a",))),
    "of two spellings the last": ('{"NodeNames": ["a"], "nodeNames": ["b"]}', FilterResult(node_names=("b",))),
    "null everywhere": (
        '{"Nodes": null, "NodeNames": null, "FailedNodes": null, "FailedAndUnresolvableNodes": null, "Error": null}',
        FilterResult(),
    ),
    "null alone": ("null", FilterResult()),
    "an empty object": ("{}", FilterResult()),
    "no items is no nodes": ('{"Nodes": {"metadata": {}}}', FilterResult(nodes=())),
    "an error": ('{"Error": "no quorum"}', FilterResult(error="no quorum")),
    "unknown fields": ('{"NodeNames": ["a"], "Mood": {"x": [1]}}', FilterResult(node_names=("a",))),
}


@pytest.mark.parametrize(("body", "meant"), RESPONSES.values(), ids=RESPONSES.keys())
def test_a_response_to_filter(body, meant):
    assert read_filter(body.encode()) == meant


INVALID = {
    "nothing at all": "",
    "no JSON": "<html>",
    "a list": "[]",
    "names that are a word": '{"NodeNames": "a"}',
    "names that are numbers": '{"NodeNames": [1]}',
    "a reason that is a number": '{"FailedNodes": {"a": 1}}',
    "an error that is an object": '{"Error": {}}',
    "items that are words": '{"Nodes": {"items": ["a"]}}',
}


@pytest.mark.parametrize("body", INVALID.values(), ids=INVALID.keys())
def test_an_invalid_body_is_a_malformed_response(body):
    with pytest.raises(MalformedResponse):
        read_filter(body.encode())


PRIORITIES: dict[str, tuple[str, dict[str, int]]] = {
    "hosts and scores": ('[{"Host": "a", "Score": 3}, {"host": "b", "score": -1}]', {"a": 3, "b": -1}),
    "a host that is named twice has the sum": ('[{"Host": "a", "Score": 3}, {"Host": "a", "Score": 4}]', {"a": 7}),
    "what is left out is nothing": ('[{"Host": "a"}, null]', {"a": 0, "": 0}),
    "null": ("null", {}),
}


@pytest.mark.parametrize(("body", "meant"), PRIORITIES.values(), ids=PRIORITIES.keys())
def test_a_response_to_prioritize(body, meant):
    assert read_priorities(body.encode()) == meant


@pytest.mark.parametrize("score", ["9223372036854775808", '"3"', "1.5"])
def test_a_score_is_a_whole_number_of_64_bits(score):
    with pytest.raises(MalformedResponse, match="Score"):
        read_priorities(f'[{{"Host": "a", "Score": {score}}}]'.encode())


def test_a_response_to_bind():
    assert read_binding(b"{}") == ""
    assert read_binding(b'{"error": "asleep"}') == "asleep"


VICTIMS: dict[str, tuple[str, dict[str, MetaVictims]]] = {
    "uids and violations": (
        '{"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "1"}, {"uid": "2"}], "NumPDBViolations": 1}}}',
        {"a": MetaVictims(("1", "2"), 1)},
    ),
    "names in any case": ('{"nodeNameToMetaVictims": {"A": {"pods": [{"Uid": "1"}]}}}', {"A": MetaVictims(("1",))}),
    "a node without victims": ('{"NodeNameToMetaVictims": {"a": null}}', {"a": MetaVictims()}),
    "no node": ("{}", {}),
}


@pytest.mark.parametrize(("body", "meant"), VICTIMS.values(), ids=VICTIMS.keys())
def test_a_response_to_preempt(body, meant):
    assert read_victims(body.encode()) == meant


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: (
        st.lists(inside) | st.dictionaries(st.sampled_from(["NodeNames", "nodes", "items", "Error"]), inside)
    ),
)


@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary())
def test_any_response_is_read_or_a_malformed_response(body):
    for read in (read_filter, read_priorities, read_binding, read_victims):
        try:
            read(body)
        except MalformedResponse:
            continue
