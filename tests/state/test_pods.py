"""Pods on nodes: assumed, confirmed, moved, gone; and pods that wait."""

from __future__ import annotations

import pytest

from mooring.base.errors import Fault
from mooring.framework import PodsWhere
from mooring.objects.placed import placed
from mooring.state import State
from mooring.testing import a_node_object, a_pod

EVERY_POD = PodsWhere()


def a_state(*names: str) -> State:
    state = State()
    for name in names:
        state.set_node(a_node_object(name))
    return state


def requested(state: State, node: str) -> int:
    view = state.node(node)
    assert view is not None
    return view.requested("cpu")


def test_an_assumed_pod_counts_at_once_and_carries_its_time() -> None:
    """4.3.13: the pod is assumed once."""
    state, pod = a_state("a"), a_pod(cpu="1")
    state.assume(pod, "a", at=7.0)
    assert requested(state, "a") == 1000
    assert state.is_assumed(pod.uid)
    assert [each.assumed_at for each in state.node("a").pods] == [7.0]  # type: ignore[union-attr]


def test_a_pod_is_assumed_only_once() -> None:
    """4.3.13: the pod is assumed once."""
    state, pod = a_state("a", "b"), a_pod("web")
    state.assume(pod, "a", at=1.0)
    with pytest.raises(Fault, match=r"default/web .* already on node a"):
        state.assume(pod, "b", at=2.0)


def test_a_pod_whose_amounts_cannot_be_read_is_not_assumed() -> None:
    with pytest.raises(Fault, match="much"):
        a_state("a").assume(a_pod(cpu="much"), "a", at=1.0)


def test_forgetting_an_assumed_pod_gives_its_room_back() -> None:
    state, pod = a_state("a"), a_pod(cpu="1")
    record = state.assume(pod, "a", at=1.0)
    assert state.forget(pod.uid) is record
    assert requested(state, "a") == 0
    assert state.forget(pod.uid) is None


def test_a_confirmed_pod_cannot_be_forgotten() -> None:
    """4.5: a failed binding forgets the pod."""
    state, pod = a_state("a"), a_pod()
    state.assume(pod, "a", at=1.0)
    state.set_pod(placed(pod, "a"))
    with pytest.raises(Fault, match="confirmed"):
        state.forget(pod.uid)
    assert state.pod(pod.uid) is not None


def test_the_watch_confirms_an_assumed_pod_without_counting_it_twice() -> None:
    state, pod = a_state("a"), a_pod(cpu="1")
    assumed = state.assume(pod, "a", at=1.0)
    assert state.set_pod(placed(pod, "a")) is assumed
    assert not state.is_assumed(pod.uid)
    assert requested(state, "a") == 1000
    assert [each.assumed_at for each in state.node("a").pods] == [None]  # type: ignore[union-attr]


def test_the_watch_moves_a_pod_that_went_elsewhere() -> None:
    state, pod = a_state("a", "b"), a_pod(cpu="1")
    state.assume(pod, "a", at=1.0)
    state.set_pod(placed(pod, "b"))
    assert (requested(state, "a"), requested(state, "b")) == (0, 1000)


def test_a_resized_pod_counts_as_its_new_size() -> None:
    state, pod = a_state("a"), a_pod(cpu="1")
    state.set_pod(placed(pod, "a"))
    state.set_pod(placed(a_pod(uid=pod.uid, cpu="3"), "a"))
    assert requested(state, "a") == 3000


def test_pods_of_a_node_that_is_gone_stay_known_and_count_when_it_is_back() -> None:
    state, pod = a_state("a"), a_pod(cpu="1")
    state.set_pod(placed(pod, "a"))
    state.remove_node("a")
    assert state.pod(pod.uid) is not None
    assert state.total(EVERY_POD, "cpu") == 1000
    state.set_node(a_node_object("a"))
    assert requested(state, "a") == 1000
    state.remove_node("a")
    state.remove_pod(pod.uid)
    state.set_node(a_node_object("a"))
    assert requested(state, "a") == 0


def test_a_pod_may_come_before_its_node() -> None:
    state = State()
    state.set_pod(placed(a_pod(cpu="1"), "a"))
    state.set_node(a_node_object("a"))
    assert requested(state, "a") == 1000


def test_sums_beyond_64_bits_show_the_largest_number_and_shrink_exactly() -> None:
    state = a_state("a")
    giants = [a_pod(memory="8E") for _ in range(3)]
    for pod in giants:
        state.set_pod(placed(pod, "a"))
    view = state.node("a")
    assert view is not None
    assert view.requested("memory") == state.nodes.requested("memory")[0] == 2**63 - 1
    for pod in giants[1:]:
        state.remove_pod(pod.uid)
    assert view.requested("memory") == 8 * 10**18


def test_pending_pods_are_found_by_what_they_look_like() -> None:
    state = State()
    first, second = a_pod("w-0", labels={"gang": "w"}), a_pod("w-1", labels={"gang": "w"})
    for pod in (first, second, a_pod("other")):
        state.set_pending(pod)
    gang = PodsWhere.labelled({"gang": "w"}, namespaces=["default"])
    assert state.pending(gang) == [first, second]
    state.remove_pending(first.uid)
    assert state.pending(gang) == [second]
    changed = a_pod("w-1", uid=second.uid)
    state.set_pending(changed)
    assert state.pending(gang) == []


def test_an_assumed_pod_is_placed_and_no_longer_pending() -> None:
    state, pod = a_state("a"), a_pod()
    state.set_pending(pod)
    state.assume(pod, "a", at=1.0)
    assert state.pending(EVERY_POD) == []
    assert [each.uid for each in state.placed(EVERY_POD)] == [pod.uid]
    state.forget(pod.uid)
    assert state.pending(EVERY_POD) == [pod]
