"""pre_enqueue: who is kept out, and what lets it in (Q10–Q15)."""

import asyncio

import pytest
from tests.queue.builders import (
    GATES_ELIMINATED,
    NODE_HINT,
    Recorded,
    a_pod,
    a_queue,
    fail,
    popped,
    scheduling_gates,
    wait,
)

from mooring.base.clock import ManualClock
from mooring.framework.events import NODE_ADDED, Action, ClusterEvent, Hint
from mooring.framework.verdicts import Code, Refusal
from mooring.queue import ProfileRules


class Quota:
    """A gate that counts its calls, and that a test opens and closes."""

    def __init__(self, is_open=True):
        self.is_open = is_open
        self.calls = 0

    def __call__(self, pod):
        self.calls += 1
        return None if self.is_open else Refusal("over quota")


QUOTA_GREW = ClusterEvent("quotas.v1.example.com", Action.UPDATE)
QUOTA_HINT = Hint("quotas.v1.example.com", Action.ADD | Action.UPDATE)


def test_a_refused_pod_is_gated_with_plugin_and_reason():
    """Q2, Q11: PreEnqueue admits a new pod or gates it; a gated pod records its plugin, without an event."""
    queue = a_queue(gates=[("Gates", scheduling_gates)])
    queue.add(pod := a_pod(gates=["hold"]))
    assert queue.where(pod) == "gated"
    assert queue.pop() is None
    waiting = queue.find(pod.uid)
    assert waiting is not None
    assert waiting.attempts == 0
    assert waiting.gating_plugin == "Gates"
    assert waiting.gating is not None
    assert waiting.gating.reasons == ("waiting for scheduling gates",)
    assert waiting.unschedulable_plugins == {"Gates"}


def test_pre_enqueue_runs_on_the_way_into_active_and_into_backoff_but_not_between_them():
    """Q10: PreEnqueue runs on the way into activeQ and backoffQ."""
    queue = a_queue(clock := ManualClock(), gates=[("Quota", quota := Quota())])
    queue.add(a_pod())
    assert quota.calls == 1
    fail(queue, refused_by="Headroom")
    assert quota.calls == 1  # into unschedulable
    queue.on_event(NODE_ADDED)
    assert (queue.where("web"), quota.calls) == ("backoff", 2)
    wait(queue, clock, 3)
    assert (queue.where("web"), quota.calls) == ("active", 2)
    fail(queue)
    assert (queue.where("web"), quota.calls) == ("backoff", 3)
    queue.activate([a_pod()])
    assert (queue.where("web"), quota.calls) == ("active", 3)
    queue.update(a_pod(), a_pod(labels={"a": "b"}))
    assert quota.calls == 3


def test_a_pod_on_its_way_into_backoff_can_be_gated():
    """Q10, Q11: PreEnqueue runs on the way into activeQ and backoffQ; a gated pod records its plugin, without event or
    condition.
    """
    queue = a_queue(clock := ManualClock(), hints={"Quota": [QUOTA_HINT]}, gates=[("Quota", quota := Quota())])
    queue.add(a_pod())
    quota.is_open = False
    fail(queue)
    assert queue.where("web") == "gated"
    quota.is_open = True
    queue.on_event(QUOTA_GREW)
    assert queue.where("web") == "backoff"  # its backoff has not ended meanwhile
    wait(queue, clock, 3)
    assert queue.where("web") == "active"


def test_a_pod_that_an_error_brought_to_a_closed_gate_is_tried_again_when_that_opens():
    """No plugin refused it: no event would ever requeue it."""
    queue = a_queue(clock := ManualClock(), gates=[("Quota", quota := Quota())])
    queue.add(a_pod())
    quota.is_open = False
    fail(queue)
    queue.recheck_pre_enqueue(a_pod())
    assert queue.where("web") == "gated"
    quota.is_open = True
    queue.recheck_pre_enqueue(a_pod())
    assert queue.where("web") == "backoff"
    assert queue.pop() is None  # it is the backoff after an error, which is not cut short
    wait(queue, clock, 3)
    assert popped(queue).pod.name == "web"


def test_a_pod_that_was_refused_and_then_gated_waits_on_when_its_gate_opens():
    queue = a_queue(gates=[("Quota", quota := Quota())])
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    quota.is_open = False
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "gated"
    quota.is_open = True
    queue.recheck_pre_enqueue(a_pod())
    assert queue.where("web") == "unschedulable"
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"


def test_a_pod_that_passes_is_gated_no_more():
    """Q12: a pod that all PreEnqueue plugins admit is not gated any more."""
    queue = a_queue(hints={"Quota": [QUOTA_HINT]}, gates=[("Quota", quota := Quota(is_open=False))])
    queue.add(a_pod())
    quota.is_open = True
    queue.on_event(QUOTA_GREW)
    waiting = popped(queue)
    assert waiting.gating_plugin is None


def test_a_gated_pod_is_looked_at_only_for_events_of_its_gate():
    """Q13, Q15: NodeAdd would free it from Headroom, of an older attempt, but not from its gate."""
    queue = a_queue(
        hints={"Quota": [QUOTA_HINT], "Headroom": [NODE_HINT]}, gates=[("Quota", quota := Quota(is_open=True))]
    )
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    quota.is_open = False
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "gated"
    calls, quota.is_open = quota.calls, True
    queue.on_event(NODE_ADDED)
    assert (queue.where("web"), quota.calls) == ("gated", calls)
    queue.on_event(QUOTA_GREW)
    assert queue.where("web") == "backoff"


def test_pre_enqueue_does_not_run_for_a_change_of_the_pod_that_it_did_not_register():
    """Q13, Q38: although a plugin of an older attempt named it."""
    queue = a_queue(
        hints={"Quota": [QUOTA_HINT], "Spread": [NODE_HINT, Hint("Pod", Action.UPDATE_POD_LABEL)]},
        gates=[("Quota", quota := Quota())],
    )
    queue.add(old := a_pod())
    fail(queue, refused_by="Spread")
    quota.is_open = False
    queue.on_event(NODE_ADDED)
    calls = quota.calls
    queue.update(old, a_pod(labels={"a": "b"}))
    assert (queue.where("web"), quota.calls) == ("gated", calls)


def test_a_gated_pod_runs_the_hints_of_an_older_attempt_too():
    """Q15: hints of older rejections run for a gated pod too."""
    never = Hint("quotas.v1.example.com", Action.UPDATE, Recorded(False))
    queue = a_queue(hints={"Quota": [never], "Headroom": [NODE_HINT, QUOTA_HINT]}, gates=[("Quota", quota := Quota())])
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    quota.is_open = False
    queue.on_event(NODE_ADDED)
    quota.is_open = True
    queue.on_event(QUOTA_GREW)
    assert queue.where("web") == "backoff"


def test_a_wildcard_reaches_gated_pods():
    """Q13: events of its plugin and wildcards requeue a gated pod."""
    queue = a_queue(hints={}, gates=[("Quota", quota := Quota(is_open=False))])
    queue.add(a_pod())
    quota.is_open = True
    queue.on_event(ClusterEvent("*", Action.ALL))
    assert queue.where("web") == "active"


def test_the_plugin_that_gates_the_pod_runs_first():
    """Q14: the gating plugin runs first."""
    first, second = Quota(), Quota(is_open=False)
    queue = a_queue(gates=[("First", first), ("Second", second)])
    queue.add(a_pod())
    assert (first.calls, second.calls) == (1, 1)
    queue.activate([a_pod()])
    assert (first.calls, second.calls) == (1, 2)
    second.is_open = True
    queue.activate([a_pod()])
    assert (first.calls, second.calls) == (2, 3)


def test_removing_the_gates_lets_the_pod_in():
    """Q38, Q40: an update of an unschedulable pod runs the hints; which changes of its own can requeue a pod."""
    queue = a_queue(hints={"Gates": [GATES_ELIMINATED]}, gates=[("Gates", scheduling_gates)])
    queue.add(two := a_pod(gates=["a", "b"]))
    queue.update(two, one := a_pod(gates=["b"]))
    assert queue.where("web") == "gated"
    queue.update(one, a_pod())
    assert queue.where("web") == "active"


def test_a_gate_that_raises_keeps_the_pod_out_and_is_logged(capsys):
    """Q11: a gated pod records its plugin, without an event."""

    def broken(pod):
        raise KeyError("team")

    queue = a_queue(hints={"Broken": [NODE_HINT]}, gates=[("Broken", broken)])
    queue.add(pod := a_pod())
    assert queue.where(pod) == "gated"
    waiting = queue.find(pod.uid)
    assert waiting is not None
    assert waiting.gating is not None
    assert waiting.gating.code is Code.ERROR
    assert 'plugin="Broken" pod="shop/web"' in capsys.readouterr().err


def test_a_gate_that_returns_an_invalid_value_keeps_the_pod_out_and_is_logged(capsys):
    """Q11: a gated pod records its plugin, without an event."""
    queue = a_queue(gates=[("Invalid", Recorded(True))])
    queue.add(pod := a_pod())
    assert queue.where(pod) == "gated"
    assert "neither None nor a Refusal" in capsys.readouterr().err


def test_each_profile_has_its_own_gates():
    closed = ProfileRules(pre_enqueue=[("Quota", Quota(is_open=False))])
    queue = a_queue(profiles={"batch": closed, "default-scheduler": ProfileRules()})
    queue.add(a_pod("one", scheduler="batch"))
    queue.add(a_pod("two"))
    assert (queue.where("one"), queue.where("two")) == ("gated", "active")


def test_pods_that_activate_each_other_at_the_gate_end():
    def gang(pod):
        queue.activate([a_pod("one"), a_pod("two")])
        return Refusal("not all are here")

    queue = a_queue(gates=[("Gang", gang)])
    queue.add(a_pod("one"))
    queue.add(a_pod("two"))
    queue.flush()
    assert (queue.where("one"), queue.where("two")) == ("gated", "gated")


@pytest.mark.parametrize("raised", [SystemExit(1), asyncio.CancelledError()], ids=["an exit", "something cancelled"])
def test_whatever_a_gate_raises_keeps_its_pod_out_and_ends_nothing_else(raised, capsys):
    """Q11, Isolation: a gated pod records its plugin, without an event; a bad plugin fails only its own pod."""

    def gate(_pod):
        raise raised

    faults = []
    queue = a_queue(gates=[("Gate", gate)], on_fault=lambda *fault: faults.append(fault))
    queue.add(a_pod())
    assert queue.where("web") == "gated"
    assert faults == [("Gate", "PreEnqueue")]
    assert 'plugin="Gate"' in capsys.readouterr().err


def test_to_activate_what_is_no_pod_fails_at_once():
    """Q42, Isolation: a gate that does so is at fault itself; the queue goes on."""
    queue = a_queue(gates=[("Gate", lambda _pod: queue.activate([None]))])  # type: ignore[list-item]
    queue.add(a_pod("web"))
    assert queue.where("web") == "gated"
    queue.flush()
    with pytest.raises(AttributeError):
        queue.activate(["web"])  # type: ignore[list-item]


class TestPodsBehindAGateThatFailed:
    """Q11: their event must be written, since there is no attempt that would."""

    def test_are_handed_out_once_for_each_failure(self):
        queue = a_queue(hints={"Broken": [NODE_HINT]}, gates=[("Broken", Recorded(True))])
        queue.add(pod := a_pod())
        assert [waiting.pod.name for waiting in queue.take_pre_enqueue_errors()] == ["web"]
        assert queue.take_pre_enqueue_errors() == []
        queue.activate([pod])
        assert [waiting.pod.name for waiting in queue.take_pre_enqueue_errors()] == ["web"]

    def test_not_if_the_plugin_only_refuses(self):
        queue = a_queue(gates=[("Gates", scheduling_gates)])
        queue.add(a_pod(gates=["a"]))
        assert queue.take_pre_enqueue_errors() == []

    def test_not_if_they_are_gone_or_let_in_meanwhile(self):
        pre_enqueue = Recorded(True)
        queue = a_queue(hints={"Broken": [NODE_HINT]}, gates=[("Broken", pre_enqueue)])
        queue.add(one := a_pod("one"))
        queue.add(two := a_pod("two"))
        queue.delete(one)
        pre_enqueue.result = None
        queue.activate([two])
        assert queue.take_pre_enqueue_errors() == []

    def test_nor_kept_in_mind_once_they_are_gone(self):
        """Who stands by takes none for as long as it does, while pods come and go."""
        queue = a_queue(gates=[("Broken", Recorded(True))])
        for name in ("one", "two"):
            queue.add(pod := a_pod(name))
            queue.delete(pod)
        assert not queue._pre_enqueue_errors
