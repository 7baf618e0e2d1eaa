"""When the event about a problem is recorded: after a while, once, and again before the API server drops it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mooring.base.clock import ManualClock
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.controllers.problem_events import (
    CHANGE_SECONDS,
    GRACE_SECONDS,
    REPEAT_SECONDS,
    ObjectProblem,
    ProblemEvents,
)
from mooring.testing import a_pod

POD = a_pod("web")
MISSING = ObjectProblem("PodGroupNotFound", "there is none")


class Recorded(list[str]):
    def record(self, about: Any, source: EventSource, reason: str, message: str, *, warning: bool) -> None:
        assert warning
        self.append(message)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def problems(clock: ManualClock, recorded: Recorded) -> ProblemEvents:
    return ProblemEvents(cast(CoreEventRecorder, recorded), EventSource("test"), clock)


def test_a_problem_is_reported_after_its_time_of_grace_and_not_with_every_call(clock, recorded, problems):
    assert problems.report(POD, MISSING) == GRACE_SECONDS
    clock.advance(GRACE_SECONDS - 1)
    assert problems.report(POD, MISSING) == 1
    assert not recorded
    clock.advance(1)
    assert problems.report(POD, MISSING) == REPEAT_SECONDS
    clock.advance(REPEAT_SECONDS - 1)
    assert problems.report(POD, MISSING) == 1
    assert recorded == ["there is none"]


def test_one_that_remains_is_repeated_while_the_api_server_still_has_the_event(clock, recorded, problems):
    problems.report(POD, MISSING, grace_seconds=0)
    clock.advance(REPEAT_SECONDS)
    problems.report(POD, MISSING, grace_seconds=0)
    assert recorded == ["there is none"] * 2
    assert REPEAT_SECONDS < 3600


def test_other_numbers_of_the_same_problem_are_reported_now_and_then(clock, recorded, problems):
    problems.report(POD, ObjectProblem("TooLarge", "9 of 8"), grace_seconds=0)
    assert problems.report(POD, ObjectProblem("TooLarge", "9 of 7"), grace_seconds=0) == CHANGE_SECONDS
    clock.advance(CHANGE_SECONDS)
    problems.report(POD, ObjectProblem("TooLarge", "9 of 6"), grace_seconds=0)
    assert recorded == ["9 of 8", "9 of 6"]


def test_one_that_was_solved_in_time_is_not_reported(clock, recorded, problems):
    problems.report(POD, MISSING)
    clock.advance(GRACE_SECONDS)
    assert problems.report(POD, None) == 0
    assert problems.report(POD, MISSING) == GRACE_SECONDS
    assert not recorded
