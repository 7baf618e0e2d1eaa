"""Change logs have the rows that changed since a generation, in two kinds: the node object, and the pods on it."""

from __future__ import annotations

from msgspec.structs import force_setattr

from mooring.objects.placed import placed
from mooring.state import ChangeLog, State
from mooring.testing import a_node_object, a_pod


def test_a_log_has_each_row_once_in_order_of_change() -> None:
    log = ChangeLog()
    log.record(1)
    mark = log.generation
    for row in (3, 2, 3):
        log.record(row)
    assert log.since(mark) == [3, 2]
    assert log.since(log.generation) == []


def test_what_is_too_long_ago_is_unknown_rather_than_wrong() -> None:
    log = ChangeLog(keep=10)
    for row in range(100):
        log.record(row)
    assert log.generation == 100
    assert log.since(0) is None
    assert log.since(98) == [98, 99]


def test_node_and_pod_changes_are_separate() -> None:
    state = State()
    state.set_node(a_node_object("a"))
    state.set_node(a_node_object("b"))
    nodes, pods = state.node_changes.generation, state.pod_changes.generation
    state.set_node(a_node_object("b", cpu="8"))
    assert state.node_changes.since(nodes) == [1]
    assert state.pod_changes.since(pods) == []

    nodes, pod = state.node_changes.generation, a_pod()
    state.assume(pod, "a", at=1.0)
    state.set_pod(placed(pod, "a"))
    assert state.node_changes.since(nodes) == []
    assert state.pod_changes.since(pods) == [0]


def test_a_what_if_leaves_no_trace_in_the_logs() -> None:
    state = State()
    state.set_node(a_node_object("a"))
    record = state.assume(a_pod(), "a", at=1.0)
    before = state.pod_changes.generation
    with state.what_if("a", without=[record]), state.what_if("a", adding=[placed(a_pod(), "a")]):
        pass
    assert state.pod_changes.generation == before
    state.forget(record.uid)
    assert state.pod_changes.generation == before + 1


def test_a_heartbeat_is_no_change() -> None:
    state = State()
    state.set_node(a_node_object("a"))
    before = state.node_changes.generation
    newer = a_node_object("a")
    force_setattr(newer.metadata, "resource_version", "2")
    state.set_node(newer)
    assert state.node_changes.generation == before
    assert state.node("a").object is newer  # type: ignore[union-attr]
