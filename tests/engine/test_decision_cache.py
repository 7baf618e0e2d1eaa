"""Cached results are those that the plugin would return now, whatever has happened since."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import a_profile, a_state, made

from mooring.engine import DecisionCache, Form, Profile, decide
from mooring.framework import Plugin, Reads
from mooring.objects.placed import placed
from mooring.plugins.default.balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.state import State
from mooring.testing import a_node_object, a_plugin, a_pod

NODES = [f"node-{number}" for number in range(6)]


def counting(scored: list[str], reads: Reads = Reads.PODS) -> Plugin:
    """A plugin that scores a node by its pods, and records the nodes that it scored."""

    def score(pod: Any, node: Any, cycle: Any) -> int:
        scored.append(node.name)
        return len(node.pods)

    plugin = made("Counting", score=score, sign=lambda pod: pod.labels.get("kind"))
    type(plugin).reads = reads
    return plugin


def a_pod_of(kind: str | None = "red", name: str = "web") -> Any:
    return a_pod(name, labels={"kind": kind} if kind else {})


def test_after_two_pods_of_a_signature_only_changed_rows_are_scored_again():
    scored: list[str] = []
    profile, state, cache = a_profile(counting(scored)), a_state(*NODES), DecisionCache()
    decide(profile, a_pod_of(), state, cache=cache)
    decide(profile, a_pod_of(), state, cache=cache)
    scored.clear()
    decide(profile, a_pod_of(), state, cache=cache)
    assert scored == []
    state.assume(a_pod_of(name="other"), "node-3", 0.0)
    decision = decide(profile, a_pod_of(), state, cache=cache)
    assert scored == ["node-3"]
    columns = decision.columns()
    assert columns is not None
    assert dict(zip(columns.nodes, columns.raw["Counting"].tolist(), strict=True))["node-3"] == 1


def test_a_pod_of_another_signature_is_scored_on_every_node():
    scored: list[str] = []
    profile, state, cache = a_profile(counting(scored)), a_state(*NODES), DecisionCache()
    for kind in ("red", "red", "blue"):
        scored.clear()
        decide(profile, a_pod_of(kind), state, cache=cache)
        assert scored == NODES


def test_a_plugin_that_does_not_sign_the_pod_runs_every_time():
    scored: list[str] = []
    profile, state, cache = a_profile(counting(scored)), a_state(*NODES), DecisionCache()
    for _ in range(3):
        scored.clear()
        decide(profile, a_pod_of(None), state, cache=cache)
        assert scored == NODES


def preparing(prepared: list[str], *, reads_requests: bool) -> Plugin:
    """A plugin that signs all pods alike, and records the pods that it prepared."""

    def pre_score(pod: Any, feasible: Any, cycle: Any) -> None:
        prepared.append(pod.name)

    plugin = made("Preparing", pre_score=pre_score, score=lambda _pod, _node, _cycle: 1, sign=lambda _pod: ())
    type(plugin).reads, type(plugin).per_template = Reads.NODE, True
    type(plugin).reads_requests = reads_requests
    return plugin


def test_a_plugin_that_reads_no_requests_is_run_for_two_pods_that_differ_in_nothing_else():
    """The second is the first of those that are known to be alike."""
    prepared: list[str] = []
    profile, state, cache = a_profile(preparing(prepared, reads_requests=False)), a_state(*NODES), DecisionCache()
    for number in range(4):
        decide(profile, a_pod(f"pod-{number}", cpu=f"{number}m"), state, cache=cache)
    assert prepared == ["pod-0", "pod-1"]
    decide(profile, a_pod("other", cpu="9m", labels={"app": "other"}), state, cache=cache)
    assert prepared == ["pod-0", "pod-1", "other"]


def test_a_plugin_that_reads_requests_is_run_for_pods_that_differ_in_them():
    prepared: list[str] = []
    profile, state, cache = a_profile(preparing(prepared, reads_requests=True)), a_state(*NODES), DecisionCache()
    for number in range(3):
        decide(profile, a_pod(f"pod-{number}", cpu=f"{number}m"), state, cache=cache)
    assert prepared == ["pod-0", "pod-1", "pod-2"]


def test_a_plugin_that_reads_anything_runs_every_time():
    scored: list[str] = []
    profile, state, cache = a_profile(counting(scored, reads=Reads.ANYTHING)), a_state(*NODES), DecisionCache()
    for _ in range(3):
        scored.clear()
        decide(profile, a_pod_of(), state, cache=cache)
        assert scored == NODES


def test_a_confirmed_pod_is_read_again_only_by_plugins_that_read_pods():
    for reads, again in ((Reads.PODS, ["node-3"]), (Reads.REQUESTED, []), (Reads.NODE, [])):
        scored: list[str] = []
        profile, state, cache = a_profile(counting(scored, reads)), a_state(*NODES), DecisionCache()
        other = a_pod_of(name="other")
        state.assume(other, "node-3", 0.0)
        for _ in range(2):
            decide(profile, a_pod_of(), state, cache=cache)
        scored.clear()
        state.set_pod(placed(other, "node-3"))
        decide(profile, a_pod_of(), state, cache=cache)
        assert scored == again, reads


def test_what_pods_request_is_read_again_where_a_pod_comes_or_goes():
    scored: list[str] = []
    profile, state, cache = a_profile(counting(scored, Reads.REQUESTED)), a_state(*NODES), DecisionCache()
    for _ in range(2):
        decide(profile, a_pod_of(), state, cache=cache)
    other = a_pod_of(name="other")
    for change in (lambda: state.assume(other, "node-3", 0.0), lambda: state.forget(other.uid)):
        scored.clear()
        change()
        decide(profile, a_pod_of(), state, cache=cache)
        assert scored == ["node-3"]


def test_a_kept_decision_does_not_change_when_rows_are_scored_again():
    profile, state, cache = a_profile(counting([])), a_state(*NODES), DecisionCache()
    decide(profile, a_pod_of(), state, cache=cache)
    kept = decide(profile, a_pod_of(), state, cache=cache).keep()
    state.assume(a_pod_of(name="other"), "node-3", 0.0)
    decide(profile, a_pod_of(), state, cache=cache)
    columns = kept.columns()
    assert columns is not None
    assert columns.raw["Counting"].tolist() == [0] * len(NODES)


def test_without_a_cache_every_pod_is_scored_on_every_node():
    scored: list[str] = []
    profile, state = a_profile(counting(scored)), a_state(*NODES)
    for _ in range(3):
        scored.clear()
        decide(profile, a_pod_of(), state)
        assert scored == NODES


def test_two_caches_of_one_profile_do_not_share_scores():
    scored: list[str] = []
    profile, state = a_profile(counting(scored)), a_state(*NODES)
    caches = DecisionCache(), DecisionCache()
    for _ in range(2):
        decide(profile, a_pod_of(), state, cache=caches[0])
    scored.clear()
    decide(profile, a_pod_of(), state, cache=caches[1])
    assert scored == NODES


def test_the_next_decision_of_a_cache_releases_the_columns_of_the_one_before():
    profile, state, cache = a_profile(counting([])), a_state(*NODES), DecisionCache()
    first = decide(profile, a_pod_of(), state, cache=cache)
    decide(a_profile(counting([])), a_pod_of(), state, cache=cache)
    decide(profile, a_pod_of(), state)
    assert first.columns() is not None
    decide(profile, a_pod_of(), state, cache=cache)
    assert first.columns() is None


def a_cached_and_an_uncached_profile() -> tuple[Profile, Profile]:
    plugins = [a_plugin(NodeResourcesFit), a_plugin(NodeResourcesBalancedAllocation)]
    points = a_profile(*plugins).points
    return Profile("cached", points), Profile("uncached", points, form=Form.VECTOR)


happenings = st.one_of(
    st.tuples(st.just("decide"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("place"), st.integers(0, 5), st.integers(0, 9)),
    st.tuples(st.just("remove"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("change node"), st.integers(0, 5), st.integers(1, 64)),
    st.tuples(st.just("remove node"), st.integers(0, 5), st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(happenings, max_size=40))
def test_whatever_happens_the_scores_equal_those_without_a_cache(history):
    cached, uncached = a_cached_and_an_uncached_profile()
    state, cache = State(), DecisionCache()
    for name in NODES:
        state.set_node(a_node_object(name, cpu="16", memory="64Gi"))
    for what, one, other in history:
        if what == "place":
            state.set_pod(placed(a_pod(f"pod-{other}", uid=f"uid-{other}", cpu=f"{100 + other}m"), NODES[one]))
        elif what == "remove":
            state.remove_pod(f"uid-{one}")
        elif what == "change node":
            state.set_node(a_node_object(NODES[one], cpu=str(other), memory="64Gi"))
        elif what == "remove node":
            state.remove_node(NODES[one])
        for kind in range(one + 1 if what == "decide" else 1):
            pod = a_pod("web", cpu=f"{500 * (kind + 1)}m", memory="1Gi")
            ours, theirs = decide(cached, pod, state, cache=cache), decide(uncached, pod, state)
            assert ours.rejections == theirs.rejections
            columns, expected = ours.columns(), theirs.columns()
            if columns is None or expected is None:
                assert columns is expected
                continue
            assert columns.total.tolist() == expected.total.tolist()
