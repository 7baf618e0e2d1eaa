"""What `decide` leaves as it was."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state, rejecting, scoring

from mooring.engine import DecisionCache, Profile, decide
from mooring.engine.profile import FilterPlugin, ScorePlugin
from mooring.framework import Rejection
from mooring.testing import a_pod

SCORES = {"a": 1, "b": 2}


def content(profile: Profile) -> dict[str, Any]:
    """Its attributes, and those of the filters and scorers that it holds."""
    held: list[FilterPlugin | ScorePlugin] = [*profile.filterers, *profile.scorers]
    slots = [[getattr(each, name) for name in each.__slots__] for each in held]
    return {**vars(profile), "held": slots, "points": dict(profile.points)}


@pytest.mark.parametrize("rejected", [[], ["a"], ["a", "b"]], ids=["two nodes fit", "one fits", "none fits"])
@pytest.mark.parametrize("cache", [None, DecisionCache()], ids=["without a cache", "with a cache"])
def test_decisions_do_not_change_the_profile(cache, rejected):
    filtering = rejecting("Filtering", {name: Rejection("no") for name in rejected})
    profile = a_profile(filtering, scoring("Scoring", SCORES))
    before = content(profile)
    for number in range(3):
        decide(profile, a_pod(f"web-{number}"), a_state("a", "b"), cache=cache)
    assert content(profile) == before
