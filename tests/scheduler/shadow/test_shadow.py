"""When actions of the other scheduler are compared, and on which view of the cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import made, rejecting, scoring
from tests.lists import list_into
from tests.scheduler.shadow.watched import Watched, emptiest

from mooring.engine import decide
from mooring.framework import Candidate, Plan, Refusal, Rejection
from mooring.objects.core import Pod
from mooring.objects.placed import placed
from mooring.scheduler.shadow.comparison import Moment, Subject
from mooring.scheduler.shadow.decision_order import BESIDE_SECONDS
from mooring.scheduler.shadow.judging import Cause
from mooring.scheduler.shadow.shadow import (
    CHANGED,
    EXTENDED,
    GONE,
    MISSED,
    PLACED_SOON,
    SEEN_WITH_NODE,
)
from mooring.testing import a_node_object, a_pod

TASTE = {"a": 9, "b": 1}


def test_a_binding_to_the_best_node_agrees():
    watched = Watched(scoring("Taste", TASTE))
    watched.changed(watched.comes("web"), node="a")
    [reported] = watched.reported
    assert (reported.result, reported.subject, reported.theirs) == ("agree", Subject.BINDING, {"node": "a"})
    assert reported.ours["node"] == "a"
    assert reported.earlier is not None
    assert reported.earlier.node == "a"


def test_a_difference_is_reported_at_once_where_no_other_pod_waits():
    watched = Watched(scoring("Taste", TASTE))
    watched.changed(watched.comes("web"), node="b")
    [reported] = watched.reported
    assert (reported.result, reported.judgement.plugin) == ("differ", "Taste")


def test_pods_bound_meanwhile_are_counted():
    watched = Watched(emptiest())
    first, second = watched.comes("first"), watched.comes("second")
    watched.changed(first, node="a")
    watched.changed(second, node="b")
    assert watched.results() == {"first": "agree", "second": "agree"}
    assert [reported.moment for reported in watched.reported] == [Moment.THEN, Moment.THEN]


def test_our_earlier_decision_explains_what_their_own_work_has_changed_since():
    # As if they had bound its volumes, and we now refused every other node, or theirs.
    walls: dict[str, Rejection] = {}
    watched = Watched(rejecting("Volumes", walls), scoring("Taste", TASTE))
    pod = watched.comes("web", volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])
    watched.changed(watched.comes("other"), node="a")
    watched.reported.clear()
    walls["a"] = Rejection("node(s) had volume conflicts")
    watched.changed(pod, node="a")
    [reported] = watched.reported
    assert (reported.result, reported.moment) == ("agree", Moment.EARLIER)


def test_a_binding_that_overtook_the_one_decided_before_it():
    watched = Watched(emptiest(), nodes=("a", "b"))
    watched.changed(watched.comes("zero"), node="b")
    watched.reported.clear()
    # Decided in this order: first to a, then second, which finds both equally full.
    first, second = watched.comes("first"), watched.comes("second")
    watched.changed(second, node="b")
    assert not watched.reported, "it may be explained yet"
    watched.changed(first, node="a")
    assert watched.results() == {"second": "agree", "first": "agree"}
    [reported] = [reported for reported in watched.reported if reported.pod == "default/second"]
    assert reported.moment is Moment.BESIDE


def test_a_binding_that_was_overtaken():
    watched = Watched(emptiest(), nodes=("a", "b"))
    first, second = watched.comes("first", is_decided=False), watched.comes("second", is_decided=False)
    watched.changed(second, node="a")
    watched.changed(first, node="a")
    assert watched.results()["first"] == "agree"
    [reported] = [reported for reported in watched.reported if reported.pod == "default/first"]
    assert reported.moment is Moment.BESIDE


def test_a_difference_that_nothing_explains_is_reported_in_time():
    watched = Watched(scoring("Taste", TASTE))
    watched.comes("waits-for-ever")
    watched.changed(watched.comes("web"), node="b")
    watched.shadow.settle()
    assert not watched.reported
    watched.clock.advance(BESIDE_SECONDS)
    watched.shadow.settle()
    assert watched.results() == {"web": "differ"}


def test_at_the_end_everything_is_reported():
    watched = Watched(scoring("Taste", TASTE))
    watched.comes("waits-for-ever")
    watched.changed(watched.comes("web"), node="b")
    watched.shadow.settle(everything=True)
    assert watched.results() == {"web": "differ"}


@pytest.mark.parametrize("end", ["refused", "deleted"])
def test_a_difference_waits_for_no_pod_that_is_refused_or_gone(end: str):
    watched = Watched(scoring("Taste", TASTE))
    before = watched.comes("before")
    watched.changed(watched.comes("web"), node="b")
    assert not watched.reported
    if end == "refused":
        watched.changed(before, refused="no")
    else:
        watched.feed.deleted(before)
    assert watched.results()["web"] == "differ"


def test_the_turn_of_a_pod_of_higher_priority_comes_first():
    watched = Watched(emptiest())
    low, high = watched.comes("low", priority=1), watched.comes("high", priority=2)
    watched.changed(low, node="a")
    watched.changed(high, node="a")
    assert watched.results() == {"low": "agree", "high": "agree"}


def test_bindings_that_lie_further_apart_did_not_overtake_each_other():
    watched = Watched(emptiest())
    first, second = watched.comes("first"), watched.comes("second")
    watched.changed(second, node="a")
    watched.clock.advance(BESIDE_SECONDS + 1)
    watched.changed(first, node="a")
    assert watched.results() == {"second": "agree", "first": "differ"}


def test_a_pod_that_went_just_now_may_have_been_there_yet():
    watched = Watched(emptiest(), nodes=("a", "b"))
    there = watched.comes("there")
    there = watched.changed(there, node="a")
    web = watched.comes("web", is_decided=False)
    watched.changed(watched.comes("other", is_decided=False), node="b")
    watched.reported.clear()
    # With both there, the nodes are equal; now a is emptier.
    watched.feed.deleted(there)
    watched.changed(web, node="b")
    [reported] = watched.reported
    assert (reported.result, reported.moment) == ("agree", Moment.BESIDE)
    assert watched.state.pod(there.uid) is None


def test_an_earlier_decision_counts_for_nothing_once_others_were_bound():
    watched = Watched(emptiest())
    pods = [watched.comes(f"pod-{number}") for number in range(3)]
    for pod in pods[:2]:
        watched.changed(pod, node="a")
    assert watched.results() == {"pod-0": "agree", "pod-1": "differ"}


def test_pods_that_came_later_explain_nothing():
    watched = Watched(emptiest())
    watched.changed(watched.comes("zero"), node="b")
    watched.comes("waits-for-ever")
    web = watched.comes("web")
    watched.changed(web, node="b")
    watched.changed(watched.comes("later"), node="a")
    watched.shadow.settle(everything=True)
    assert watched.results()["web"] == "differ"


def test_the_cluster_is_as_before_after_every_comparison():
    watched = Watched(emptiest())
    pods = [watched.comes(f"pod-{number}") for number in range(6)]
    for pod in pods:
        watched.changed(pod, node="b")
    watched.shadow.settle(everything=True)
    here = [placed(a_pod(pod.name, uid=pod.uid, node="b")) for pod in pods]
    assert not watched.state.compare([a_node_object("a"), a_node_object("b")], here)


@settings(deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(2, 4), st.booleans())
def test_a_scheduler_with_our_rules_agrees_in_whatever_order_its_bindings_appear(
    data: st.DataObject, count: int, nodes: int, is_decided: bool
):
    names = [f"n{number}" for number in range(nodes)]
    watched, theirs = Watched(emptiest(), nodes=names), Watched(emptiest(), nodes=names)
    pods = [watched.comes(f"pod-{number}", is_decided=is_decided) for number in range(count)]
    bindings = []
    for number, pod in enumerate(pods):
        decision = decide(theirs.profile, pod, theirs.state, seed=number * 7)
        assert decision.node is not None
        theirs.state.assume(pod, decision.node, 0.0)
        bindings.append((pod, decision.node))
    for pod, node in data.draw(st.permutations(bindings)):
        watched.changed(pod, node=node)
    watched.shadow.settle(everything=True)
    assert set(watched.results().values()) == {"agree"}
    assert len(watched.reported) == count


# What cannot be compared


def test_a_pod_that_has_its_node_when_it_is_first_seen():
    watched = Watched(emptiest())
    watched.feed.changed(a_pod("web", node="a"))
    [reported] = watched.reported
    assert (reported.result, reported.judgement.why) == ("not_comparable", SEEN_WITH_NODE)


def test_pods_placed_before_we_came_are_history():
    watched = Watched(emptiest(), is_started=False)
    pod = a_pod("web", node="a")
    list_into(watched.feed, [pod])
    watched.changed(pod, node="a")
    assert not watched.reported


def test_a_pod_that_got_its_node_while_we_could_not_look():
    watched = Watched(emptiest())
    web = watched.comes("web")
    list_into(watched.feed, [a_pod("web", uid=web.uid, node="a"), a_pod("other", node="b")])
    assert {reported.judgement.why for reported in watched.reported} == {MISSED}
    assert watched.results() == {"web": "not_comparable", "other": "not_comparable"}
    list_into(watched.feed, [a_pod("web", uid=web.uid, node="a")])
    assert len(watched.reported) == 2


def test_a_pod_that_goes_before_it_gets_a_node():
    watched = Watched(emptiest())
    watched.feed.deleted(watched.comes("deleted"))
    watched.comes("not-in-the-next-list")
    watched.feed.listed({})
    assert [reported.judgement.why for reported in watched.reported] == [GONE, GONE]
    assert watched.shadow.waiting == 0


def test_a_node_that_we_do_not_know():
    watched = Watched(emptiest())
    watched.changed(watched.comes("web"), node="new")
    [reported] = watched.reported
    assert (reported.result, reported.judgement.why) == ("not_comparable", "we do not know node new")


def test_a_pod_that_we_cannot_decide_about():
    watched = Watched(emptiest(), hindrance=lambda _pod: "claims have not been listed")
    watched.changed(watched.comes("web"), node="a")
    [reported] = watched.reported
    assert (reported.result, reported.judgement.why) == ("not_comparable", "claims have not been listed")


def test_where_extenders_take_part_only_the_decision_that_called_them_counts():
    watched = Watched(scoring("Taste", TASTE), is_extended=lambda _pod: True)
    watched.changed(watched.comes("one"), node="a")
    watched.changed(watched.comes("two"), node="b")
    assert watched.results() == {"one": "agree", "two": "not_comparable"}
    assert watched.reported[1].judgement.why == EXTENDED


def test_pods_of_other_schedulers_are_not_reported():
    watched = Watched(emptiest())
    watched.feed.changed(a_pod("web", scheduler="another-scheduler"))
    watched.feed.changed(a_pod("web", scheduler="another-scheduler", node="a"))
    assert not watched.reported


def test_a_comparison_that_fails_costs_nothing_but_itself(capfd: pytest.CaptureFixture[str]):
    def hindrance(pod: Pod) -> str | None:
        raise RuntimeError("out of order")

    watched = Watched(emptiest(), hindrance=hindrance)
    web = watched.comes("web")
    watched.changed(web, node="a")
    placed_pod = watched.state.pod(web.uid)
    assert placed_pod is not None
    assert placed_pod.node == "a"
    assert "out of order" in capfd.readouterr().err


# Gates, refusals, nominations


def test_a_pod_that_a_gate_of_ours_keeps_out():
    watched = Watched(emptiest(), gate=lambda _pod: Refusal("not before Monday"))
    watched.changed(watched.comes("web"), node="a")
    [reported] = watched.reported
    assert (reported.result, reported.judgement.cause, reported.judgement.plugin) == ("differ", Cause.GATE, "Gate")
    assert reported.judgement.why == "Gate keeps the pod out of our queue: not before Monday"


WALLS = {"a": Rejection("wall"), "b": Rejection("wall")}
SAME_WORDS = "0/2 nodes are available: 2 wall."


def test_refusals_are_compared_each_time_their_message_changes():
    watched = Watched(rejecting("Wall", WALLS))
    pod = watched.changed(watched.comes("web"), refused=SAME_WORDS)
    pod = watched.changed(pod, refused=SAME_WORDS)
    watched.changed(pod, refused="0/2 nodes are available: 2 Insufficient cpu.")
    assert [(reported.result, reported.subject) for reported in watched.reported] == [
        ("agree", Subject.REFUSAL),
        ("words", Subject.REFUSAL),
    ]


def test_a_refusal_from_before_the_shadow_started_is_not_compared():
    watched = Watched(emptiest())
    watched.changed(a_pod("web"), refused="0/9 nodes are available")
    assert not watched.reported


def test_they_refuse_a_pod_that_we_would_place():
    watched = Watched(scoring("Taste", TASTE))
    watched.changed(watched.comes("web"), refused="0/2 nodes are available: 2 Insufficient cpu.")
    [reported] = watched.reported
    assert (reported.result, reported.judgement.cause) == ("differ", Cause.PLACED)


def test_a_refusal_that_was_true_when_the_pod_came():
    walls = dict(WALLS)
    watched = Watched(rejecting("Wall", walls))
    pod = watched.comes("web")
    walls.clear()
    watched.changed(pod, refused=SAME_WORDS)
    [reported] = watched.reported
    assert (reported.result, reported.moment) == ("agree", Moment.EARLIER)


def test_a_refusal_between_two_states_is_not_judged():
    walls = dict(WALLS)
    watched = Watched(rejecting("Wall", walls))
    pod = watched.comes("web")
    walls.clear()
    watched.changed(pod, refused="0/2 nodes are available: 1 wall, 1 Insufficient cpu.")
    [reported] = watched.reported
    assert (reported.result, reported.judgement.why) == ("not_comparable", CHANGED)


def test_a_refusal_that_they_took_back_a_moment_later():
    watched = Watched(scoring("Taste", TASTE))
    watched.comes("waits-for-ever")
    pod = watched.changed(watched.comes("web"), refused="0/2 nodes are available")
    assert not watched.reported
    watched.changed(pod, node="a")
    assert [(reported.subject, reported.result, reported.judgement.why) for reported in watched.reported] == [
        (Subject.REFUSAL, "not_comparable", PLACED_SOON),
        (Subject.BINDING, "agree", "best"),
    ]


def test_a_node_that_is_named_before_the_binding_is_compared_then_and_once():
    watched = Watched(scoring("Taste", TASTE))
    pod = watched.changed(watched.comes("web"), nominated="b")
    [reported] = watched.reported
    assert (reported.result, reported.subject, reported.judgement.plugin) == ("differ", Subject.BINDING, "Taste")
    watched.changed(pod, node="b", nominated="b")
    assert len(watched.reported) == 1


def test_a_binding_to_another_node_than_the_one_named_is_compared_again():
    watched = Watched(scoring("Taste", TASTE))
    pod = watched.changed(watched.comes("web"), nominated="a")
    watched.changed(pod, node="b", nominated="a")
    assert [reported.result for reported in watched.reported] == ["agree", "differ"]


def test_room_is_compared_when_the_nomination_shows():
    victims = (placed(a_pod("victim", node="a")),)
    plan = Plan("a", victims, candidates=(Candidate("a", victims),))
    mover = made("Mover", post_filter=lambda _pod, _evidence, _what_if: plan)
    watched = Watched(rejecting("Wall", WALLS), mover)
    watched.changed(watched.comes("right"), refused=SAME_WORDS, nominated="a")
    watched.changed(watched.comes("wrong"), refused=SAME_WORDS, nominated="b")
    watched.shadow.settle(everything=True)
    assert [(reported.subject, reported.result) for reported in watched.reported] == [
        (Subject.PREEMPTION, "agree"),
        (Subject.PREEMPTION, "differ"),
    ]


def test_room_that_has_been_made_already_is_compared_with_the_plan_of_before():
    walls = dict(WALLS)
    victims = (placed(a_pod("victim", node="a")),)
    plan = Plan("a", victims, candidates=(Candidate("a", victims),))
    watched = Watched(rejecting("Wall", walls), made("Mover", post_filter=lambda _pod, _evidence, _what_if: plan))
    pod = watched.comes("web")
    del walls["b"]
    watched.changed(pod, refused=SAME_WORDS, nominated="a")
    [reported] = watched.reported
    assert (reported.subject, reported.result, reported.moment) == (Subject.PREEMPTION, "agree", Moment.EARLIER)
