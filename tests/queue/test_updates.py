"""What a change of a waiting pod does to it (Q36–Q40)."""

import pytest
from tests.queue.builders import NODE_HINT, a_pod, a_queue, fail, is_this_pod, names, popped, scheduling_gates

from mooring.framework.events import NODE_ADDED, Action, Hint


def test_an_update_during_the_attempt_is_replayed_as_an_event_and_nothing_else():
    """Q36: the next attempt sees the latest pod."""
    queue = a_queue(hints={"Spread": [Hint("Pod", Action.UPDATE_POD_LABEL, is_this_pod)]})
    queue.add(pod := a_pod())
    waiting = popped(queue)
    queue.update(pod, latest := a_pod(labels={"tier": "front"}))
    assert (queue.where("web"), waiting.pod) == ("in flight", pod)
    queue.requeue(waiting, unschedulable=["Spread"])
    assert (queue.where("web"), waiting.pod) == ("backoff", latest)


def test_an_active_pod_is_replaced_and_takes_its_new_turn():
    """Q37: an update replaces a queued pod in place."""
    queue = a_queue()
    queue.add(a_pod("one", priority=5))
    queue.add(pod := a_pod("two", priority=1))
    queue.update(pod, a_pod("two", priority=9, gates=["ignored here"]))
    assert names([queue.pop(), queue.pop()]) == ["two", "one"]


def test_an_active_pod_is_not_gated_by_an_update():
    """Q37: an update replaces a queued pod in place."""
    queue = a_queue(gates=[("Gates", scheduling_gates)])
    queue.add(pod := a_pod())
    queue.update(pod, a_pod(gates=["late"]))
    assert queue.where("web") == "active"


def test_a_pod_that_backs_off_is_replaced_in_its_window():
    """Q37: an update replaces a queued pod in place."""
    queue = a_queue()
    for name in ("one", "two"):
        queue.add(a_pod(name))
        fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    release = queue.next_flush()
    queue.update(a_pod("two"), a_pod("two", priority=9))
    assert (queue.counts()["backoff"], queue.next_flush()) == (2, release)
    assert names([queue.pop(), queue.pop(), queue.pop()]) == ["two", "one", None]


def test_a_pod_that_backs_off_after_an_error_stays_there():
    """Q37: an update replaces a queued pod in place."""
    queue = a_queue()
    queue.add(a_pod())
    fail(queue)
    queue.update(a_pod(), a_pod(labels={"a": "b"}))
    assert queue.where("web") == "backoff"
    assert queue.pop() is None


OWN_UPDATES = {
    "its labels": (Action.UPDATE_POD_LABEL, a_pod(), a_pod(labels={"a": "b"}), True),
    "fewer requests": (Action.UPDATE_POD_SCALE_DOWN, a_pod(cpu="2"), a_pod(cpu="1"), True),
    "more requests": (Action.UPDATE_POD_SCALE_DOWN, a_pod(cpu="1"), a_pod(cpu="2"), False),
    "one more toleration": (Action.UPDATE_POD_TOLERATION, a_pod(), a_pod(tolerations=1), True),
    "something else than named": (Action.UPDATE_POD_TOLERATION, a_pod(), a_pod(labels={"a": "b"}), False),
    "nothing that scheduling knows": (Action.UPDATE_POD_LABEL, a_pod(), a_pod(), False),
    "nothing that scheduling knows, for any update": (Action.UPDATE, a_pod(), a_pod(), True),
}


@pytest.mark.parametrize(("named", "old", "new", "wakes"), OWN_UPDATES.values(), ids=OWN_UPDATES.keys())
def test_a_refused_pod_wakes_when_what_its_plugin_named_changes_in_it(named, old, new, wakes):
    """Q38, Q40: an update of an unschedulable pod runs the hints; which changes of its own can requeue a pod."""
    queue = a_queue(hints={"Plugin": [Hint("Pod", named, is_this_pod)]})
    queue.add(old)
    waiting = fail(queue, refused_by="Plugin")
    queue.update(old, new)
    assert queue.where("web") == ("backoff" if wakes else "unschedulable")
    assert waiting.pod is new


def test_one_of_several_changes_is_enough():
    """Q38: an update of an unschedulable pod runs the hints."""
    queue = a_queue(hints={"Plugin": [Hint("Pod", Action.UPDATE_POD_TOLERATION, is_this_pod)]})
    queue.add(old := a_pod())
    fail(queue, refused_by="Plugin")
    queue.update(old, a_pod(labels={"a": "b"}, tolerations=1))
    assert queue.where("web") == "backoff"


def test_a_refused_pod_that_was_replaced_is_still_requeued_by_events():
    """Q38: an update of an unschedulable pod runs the hints."""
    queue = a_queue()
    queue.add(old := a_pod())
    fail(queue, refused_by="Headroom")
    queue.update(old, a_pod(labels={"a": "b"}))
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"


def test_an_update_of_an_unknown_pod_adds_it_through_the_gate():
    """Q39: an update of an unknown pod adds it."""
    queue = a_queue(gates=[("Gates", scheduling_gates)])
    queue.update(a_pod("one"), a_pod("one"))
    queue.update(a_pod("two"), a_pod("two", gates=["hold"]))
    assert (queue.where("one"), queue.where("two")) == ("active", "gated")


def test_adding_a_pod_that_waits_updates_it():
    queue = a_queue(hints={"Headroom": [NODE_HINT]})
    queue.add(a_pod())
    waiting = fail(queue, refused_by="Headroom")
    queue.add(latest := a_pod(labels={"a": "b"}))
    assert (queue.where("web"), waiting.pod, len(queue)) == ("unschedulable", latest, 1)


def test_a_pod_made_again_under_its_name_replaces_the_old_one():
    queue = a_queue()
    queue.add(old := a_pod(uid="old"))
    fail(queue, refused_by="Headroom")
    queue.update(old, a_pod(uid="new"))
    assert (queue.where("old"), queue.where("new"), len(queue)) == ("absent", "active", 1)


def test_a_quantity_that_is_none_does_not_stop_the_update(capsys):
    queue = a_queue()
    queue.add(old := a_pod(cpu="much"))
    waiting = fail(queue, refused_by="Headroom")
    queue.update(old, new := a_pod(cpu="1"))
    assert waiting.pod is new
    assert "Failed to compute what changed" in capsys.readouterr().err
