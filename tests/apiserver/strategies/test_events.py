"""Events: stored once, served by two APIs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.conftest import Client

from mooring.apiserver.strategies import events
from mooring.apiserver.strategies.events import TTL_SECONDS, to_core, to_events_v1
from mooring.base.clock import ManualClock

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"


def an_event(name: str = "web.1", **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
        "reason": "FailedScheduling",
        "type": "Warning",
        "note": "0/3 nodes are available",
        "action": "Scheduling",
        "reportingController": "mooring",
        "reportingInstance": "mooring-1",
        **fields,
    }


async def test_an_event_written_in_the_new_form_is_read_in_the_old(api: Client):
    series = {"count": 2, "lastObservedTime": "2023-11-14T22:14:20.000000Z"}
    assert (await api.post(NEW, an_event(series=series))).code == 201
    old = (await api.get(f"{CORE}/web.1")).body
    assert (old["apiVersion"], old["kind"]) == ("v1", "Event")
    assert old["message"] == "0/3 nodes are available"
    assert old["involvedObject"]["name"] == "web"
    assert old["reportingComponent"] == "mooring"
    assert old["series"] == series


async def test_an_event_written_in_the_old_form_is_read_in_the_new(api: Client):
    old = {
        "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "message": "Started container",
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:21Z",
        "count": 3,
        "type": "Normal",
        "reason": "Started",
    }
    assert (await api.post(CORE, old)).code == 201
    new = (await api.get(NEW)).body["items"][0]
    assert new["apiVersion"] == "events.k8s.io/v1"
    assert new["note"] == "Started container"
    assert new["regarding"]["name"] == "web"
    assert new["deprecatedSource"] == {"component": "kubelet", "host": "node-1"}
    assert (new["deprecatedFirstTimestamp"], new["deprecatedLastTimestamp"], new["deprecatedCount"]) == (
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:21Z",
        3,
    )


async def test_both_apis_watch_the_same_events_in_their_own_form(api: Client):
    old, new = await api.watch(CORE), await api.watch(NEW)
    await api.post(NEW, an_event())
    patched = await api.patch(f"{NEW}/web.1", {"note": "again"})
    assert patched.body["note"] == "again"
    shown = [(await old.next(), await new.next()) for _ in range(2)]
    assert [event["object"]["message"] for event, _ in shown if event] == ["0/3 nodes are available", "again"]
    assert [event["object"]["note"] for _, event in shown if event] == ["0/3 nodes are available", "again"]


async def test_events_are_selected_by_what_they_are_about(api: Client):
    await api.post(NEW, an_event())
    for path in (
        f"{CORE}?fieldSelector=involvedObject.name%3Dweb,type%3DWarning",
        f"{NEW}?fieldSelector=regarding.name%3Dweb,reason%3DFailedScheduling",
    ):
        assert len((await api.get(path)).body["items"]) == 1
    assert (await api.get(f"{CORE}?fieldSelector=involvedObject.name%3Ddb")).body["items"] == []


WRONG = {
    "no controller": ({"reportingController": ""}, "reportingController: Required value"),
    "no action": ({"action": ""}, "action: Required value"),
    "another namespace": (
        {"regarding": {"kind": "Pod", "name": "web", "namespace": "shop"}},
        'involvedObject.namespace: Invalid value: "shop": does not match event.namespace',
    ),
    "a series of one": ({"series": {"count": 1}}, "series.count: Invalid value: 1: should be at least 2"),
}


@pytest.mark.parametrize(("fields", "sentence"), WRONG.values(), ids=WRONG.keys())
async def test_an_event_is_refused_with(api: Client, fields: dict[str, Any], sentence: str):
    response = await api.post(NEW, an_event(**fields))
    assert response.code == 422
    assert sentence in response.message


async def test_events_are_forgotten_after_an_hour(api: Client, clock: ManualClock):
    await api.post(NEW, an_event("old"))
    clock.advance(TTL_SECONDS)
    await api.post(NEW, an_event("new"))
    assert [each["metadata"]["name"] for each in (await api.get(NEW)).body["items"]] == ["new"]


async def test_beyond_a_number_the_oldest_events_go_early(api: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(events, "MAX_EVENTS", 2)
    for name in ("a", "b", "c"):
        await api.post(NEW, an_event(name))
    assert [each["metadata"]["name"] for each in (await api.get(NEW)).body["items"]] == ["b", "c"]


fields = st.sampled_from(["note", "reason", "action", "type", "reportingInstance", "deprecatedCount", "series"])


@given(st.dictionaries(fields, st.text(max_size=3)))
def test_conversion_there_and_back_loses_nothing(event: dict[str, str]):
    there_and_back = to_events_v1(to_core({**event, "regarding": {}, "deprecatedSource": {}, "eventTime": None}))
    assert {field: there_and_back[field] for field in event} == event
