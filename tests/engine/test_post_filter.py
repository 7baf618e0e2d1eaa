"""post_filter: what it is shown, its what-ifs, and that they change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state, made, rejecting

from mooring.engine import Profile, decide
from mooring.framework import UNRESOLVABLE, Plan, Plugin, PodsWhere, Refusal, Rejection, Skip
from mooring.testing import a_node_object, a_pod


class Fit(Plugin):
    """CPU and nothing else."""

    def pre_filter(self, pod: Any, cycle: Any) -> Any:
        return pod.request("cpu")

    def filter(self, pod: Any, node: Any, cycle: Any) -> Any:
        return Rejection("Insufficient cpu") if cycle.filter_state(self) > node.free("cpu") else None


class OnePerZone(Plugin):
    """Not two pods with the label in one zone: a rule that looks beyond the node, by a tally."""

    def pre_filter(self, pod: Any, cycle: Any) -> Any:
        return cycle.tally(PodsWhere.labelled({"app": "web"}), "zone")

    def filter(self, pod: Any, node: Any, cycle: Any) -> Any:
        return Rejection("zone is taken") if cycle.filter_state(self).at(node) else None


class EvictOne(Plugin):
    """Proposes the first lower-priority pod whose going would let this one in."""

    def post_filter(self, pod: Any, refused: Any, what_if: Any) -> Any:
        for node in refused.resolvable_nodes():
            for victim in node.pods:
                if victim.priority < pod.priority:
                    with what_if.without(node, [victim]):
                        fits = what_if.fits(pod, node)
                    if fits:
                        return Plan(nominate=node.name, evict=(victim,))
        return Refusal("no pod to evict")


def test_a_plan_names_the_node_and_the_victims() -> None:
    """4.3.9: PostFilter runs when no node is left."""
    state = a_state("a", "b")
    state.assume(a_pod("important", cpu="4", priority=9), "a", at=1.0)
    state.assume(a_pod("small", cpu="1", priority=1), "b", at=1.0)
    victim = state.assume(a_pod("large", cpu="3", priority=1), "b", at=1.0)
    before = state.pod_changes.generation
    decision = decide(a_profile(Fit(), EvictOne()), a_pod(cpu="2", priority=5), state)
    assert decision.plan == Plan(nominate="b", evict=(victim,))
    assert decision.is_refused
    assert decision.post_filtered.results == (("EvictOne", decision.plan),)
    assert decision.evidence()["plan"] == {"nominate": "b", "evict": ["default/large"]}
    assert state.nodes.free("cpu").tolist() == [0, 0]
    assert state.pod_changes.generation == before


@pytest.mark.parametrize("preempts", [True, False])
def test_an_attempt_to_preempt_is_recorded_if_the_plugin_declares_that_it_preempts(preempts: bool) -> None:
    class Preempting(EvictOne):
        pass

    Preempting.preempts = preempts
    decision = decide(a_profile(Fit(), Preempting()), a_pod(cpu="9", priority=5), a_state("a"))
    assert decision.post_filtered.is_preemption_attempted is preempts


def test_evicting_a_pod_in_a_what_if_moves_the_tallies_that_filters_read() -> None:
    state = a_state()
    for name in ("a1", "a2", "b1"):
        state.set_node(a_node_object(name, labels={"zone": name[0]}))
    victim = state.assume(a_pod(labels={"app": "web"}, priority=1), "a1", at=1.0)
    state.assume(a_pod(labels={"app": "web"}, priority=9), "b1", at=1.0)
    decision = decide(a_profile(OnePerZone(), EvictOne()), a_pod(priority=5), state)
    assert decision.message.startswith("0/3 nodes are available: 3 zone is taken.")
    assert decision.plan == Plan(nominate="a1", evict=(victim,))


def test_unresolvable_nodes_are_not_resolvable_nodes() -> None:
    """4.7.1: which pods may preempt, and on which nodes."""
    shown: list[str] = []

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Any:
        shown.extend(node.name for node in refused.resolvable_nodes())
        return Refusal()

    rejections = {"a": Rejection("x"), "b": Rejection("x", code=UNRESOLVABLE), "c": Rejection("y")}
    decide(
        a_profile(rejecting("Filter", rejections), made("Look", post_filter=post_filter)),
        a_pod(),
        a_state("a", "b", "c"),
    )
    assert shown == ["a", "c"]


def test_after_an_unschedulable_pre_filter_every_node_is_resolvable() -> None:
    """4.3.3: a PreFilter rejection applies to all nodes."""
    shown: dict[str, Any] = {}

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Any:
        shown.update(refused.rejections)
        assert {node.name for node in refused.resolvable_nodes()} == {"a", "b"}
        return Refusal()

    gang = made("Gang", pre_filter=lambda _pod, _cycle: Refusal("incomplete"))
    decide(a_profile(gang, made("Look", post_filter=post_filter)), a_pod(), a_state("a", "b"))
    assert shown == dict.fromkeys(["a", "b"], ("Gang", Refusal("incomplete")))


def test_a_plugin_that_skipped_still_skips_in_a_what_if() -> None:
    skips = iter([Skip()])
    moody = rejecting("Moody", {"a": Rejection("x")}, pre_filter=lambda _pod, _cycle: next(skips))
    fits = []

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Any:
        fits.append(what_if.fits(pod, next(iter(refused.resolvable_nodes()))))
        return Refusal()

    decide(
        a_profile(moody, rejecting("Always", {"a": Rejection("y")}), made("Look", post_filter=post_filter)),
        a_pod(),
        a_state("a"),
    )
    assert fits == [False]
    assert next(skips, None) is None


@pytest.mark.parametrize("reads_pods", [True, False])
def test_a_what_if_about_another_pod_prepares_the_filters_for_that_pod(reads_pods) -> None:
    fits: list[bool] = []

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Any:
        [node] = refused.resolvable_nodes()
        fits.extend(what_if.fits(each, node) for each in (pod, a_pod("small", cpu="1"), a_pod("large", cpu="9")))
        return Refusal()

    fit = Fit()
    fit.pre_filter_reads_pods = reads_pods  # type: ignore[misc]
    decide(a_profile(fit, made("Look", post_filter=post_filter)), a_pod(cpu="8"), a_state("a"))
    assert fits == [False, True, False]


def test_without_nodes_no_post_filter_runs() -> None:
    """4.3.1: without nodes no plugin rejects the pod."""
    assert decide(a_profile(made("X", post_filter=lambda *_: 1 / 0)), a_pod(), a_state()).post_filtered.results == ()


def test_without_post_filters_the_pod_is_refused_all_the_same() -> None:
    """4.3.9: PostFilter runs when no node is left."""
    profile = Profile("bare", {})
    assert decide(profile, a_pod(), a_state()).is_refused


def test_a_post_filter_that_returns_an_invalid_value_is_named() -> None:
    profile = a_profile(rejecting("F", {"a": Rejection("x")}), made("X", post_filter=lambda *_: None))
    decision = decide(profile, a_pod(), a_state("a"))
    assert decision.message.endswith(
        'running PostFilter plugin "X": post_filter returned None; it must return a Plan or a Refusal'
    )
    assert decision.rejectors == (frozenset({"F"}), frozenset())
