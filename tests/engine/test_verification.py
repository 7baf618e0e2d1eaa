"""A decision with cached results is compared with one from scratch; the plugin that differs is named."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state, made, rejecting, scoring

from mooring.engine import DecisionCache, Profile, decide
from mooring.engine.verification import Difference, first_difference
from mooring.framework import Plan, Plugin, Reads, Refusal, Rejection
from mooring.testing import a_pod


def caching(reads: Reads, score: Any, sign: Any = lambda _pod: ()) -> Plugin:
    plugin = made("Cached", score=score, sign=sign)
    type(plugin).reads = reads
    return plugin


def pods_on(_pod: Any, node: Any, _cycle: Any) -> int:
    return len(node.pods)


def by_label(pod: Any, _node: Any, _cycle: Any) -> int:
    return int(pod.labels["score"])


def compared(plugin: Plugin) -> Difference | None:
    """After two pods of one signature, one of them placed on node b, decide about a third."""
    profile, state, cache = a_profile(plugin), a_state("a", "b", "c"), DecisionCache()
    for score in ("1", "1"):
        decide(profile, a_pod(labels={"score": score}), state, cache=cache)
    state.assume(a_pod("other"), "b", 0.0)
    pod = a_pod(labels={"score": "2"})
    return first_difference(decide(profile, pod, state, cache=cache), decide(profile, pod, state))


HONEST = {
    "it declares that it reads pods": caching(Reads.PODS, pods_on),
    "its signature has what it reads of the pod": caching(Reads.NODE, by_label, lambda pod: pod.labels["score"]),
    "it declares nothing": caching(Reads.ANYTHING, pods_on),
}
LYING = {
    "it reads pods and declares nodes": (
        caching(Reads.NODE, pods_on),
        Difference("Cached", "b", "raw score 0", "raw score 1"),
    ),
    "its signature leaves out what it reads of the pod": (
        caching(Reads.NODE, by_label),
        Difference("Cached", "a", "raw score 1", "raw score 2"),
    ),
}


@pytest.mark.parametrize("plugin", HONEST.values(), ids=HONEST.keys())
def test_there_is_no_difference_where(plugin: Plugin) -> None:
    assert compared(plugin) is None


@pytest.mark.parametrize(("plugin", "expected"), LYING.values(), ids=LYING.keys())
def test_plugin_node_and_both_scores_are_named_where(plugin: Plugin, expected: Difference) -> None:
    assert compared(plugin) == expected


def fails(*_: Any) -> Any:
    raise ValueError("no disk")


PASSED, FULL = "passed", "rejected by Full (full)"
TAINTED = "rejected by Tainted (tainted)"
full, tainted = rejecting("Full", {"b": Rejection("full")}), rejecting("Tainted", {"b": Rejection("tainted")})
PAIRS = {
    "a rejection": ([full], [rejecting("Full", {})], Difference("Full", "b", FULL, PASSED)),
    "a node that only the fresh decision rejects": (
        [rejecting("Full", {})],
        [full],
        Difference("Full", "b", PASSED, FULL),
    ),
    "two filters: the first that differs": (
        [full, tainted],
        [rejecting("Full", {}), tainted],
        Difference("Full", "b", FULL, TAINTED),
    ),
    "a reason": (
        [full],
        [rejecting("Full", {"b": Rejection("busy")})],
        Difference("Full", "b", FULL, "rejected by Full (busy)"),
    ),
    "a rejection of the pod": (
        [made("Quota", pre_filter=lambda *_: Refusal("used up"))],
        [made("Quota", pre_filter=lambda *_: None)],
        Difference("Quota", "", "rejected by Quota (used up)", PASSED),
    ),
    "an error": (
        [made("Disk", pre_filter=fails)],
        [made("Disk", pre_filter=lambda *_: None)],
        Difference("Disk", "", 'running PreFilter plugin "Disk": ValueError: no disk', "no error"),
    ),
    "a plan": (
        [rejecting("Full", dict.fromkeys("ab", Rejection("full"))), made("Room", post_filter=lambda *_: Plan("a"))],
        [rejecting("Full", dict.fromkeys("ab", Rejection("full"))), made("Room", post_filter=lambda *_: Plan("b"))],
        Difference("Room", "", "plan ('a',)", "plan ('b',)"),
    ),
    "the sum of equal scores": (
        [(scoring("Best", {"a": 1, "b": 2}), 1)],
        [(scoring("Best", {"a": 1, "b": 2}), 3)],
        Difference("", "", "node b, total 2", "node b, total 6"),
    ),
}


@pytest.mark.parametrize(("cached", "fresh", "expected"), PAIRS.values(), ids=PAIRS.keys())
def test_what_differs_is(cached: list[Any], fresh: list[Any], expected: Difference) -> None:
    pod, state = a_pod(), a_state("a", "b")
    profiles: list[Profile] = [a_profile(*cached), a_profile(*fresh)]
    assert first_difference(*(decide(profile, pod, state) for profile in profiles)) == expected


def test_a_plugin_that_returns_something_else_each_time_is_named() -> None:
    calls = itertools.count()
    profile, pod, state = a_profile(made("Moody", score=lambda *_: next(calls))), a_pod(), a_state("a", "b")
    difference = first_difference(*(decide(profile, pod, state) for _ in range(2)))
    assert str(difference) == "plugin Moody of node a: raw score 0 by the cache, raw score 2 from scratch"
