"""The order of preemption candidates."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.base.clock import timestamp
from mooring.framework import Candidate
from mooring.framework.preemption import disruption, least_disruptive
from mooring.objects.placed import PlacedPod, placed
from mooring.testing import a_pod


def a_record(priority: int, started: float | None) -> PlacedPod:
    pod = a_pod("victim", priority=priority)
    force_setattr(pod.status, "start_time", None if started is None else timestamp(started))
    return placed(pod, "n")


RECORDS = st.lists(
    st.builds(a_record, st.integers(-3, 3), st.one_of(st.none(), st.integers(0, 3).map(float))), min_size=1, max_size=4
).map(lambda pods: tuple(sorted(pods, key=lambda pod: -pod.priority)))


@given(st.lists(st.builds(Candidate, st.just("n"), RECORDS, st.integers(0, 2)), min_size=1, max_size=6), st.integers(0))
def test_each_criterion_chooses_among_the_candidates_that_the_one_before_left(candidates, seed):
    """As in kube-scheduler: each criterion keeps the best of those that the one before kept."""
    left = candidates
    for criterion in range(5):
        scores = disruption(left)[criterion].tolist()
        left = [each for each, score in zip(left, scores, strict=True) if score == min(scores)]
    assert least_disruptive(candidates, seed) in left


def test_the_seed_breaks_ties():
    equals = [Candidate(name, (a_record(0, None),)) for name in "abc"]
    assert {least_disruptive(equals, seed).node for seed in range(3)} == {"a", "b", "c"}
    assert disruption(equals)[-1].tolist() == [-math.inf] * 3
