"""Waiting between tries: how long, how often, and when it ends."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.clock import ManualClock
from mooring.base.retry import Backoff, Retry, poll, retried

SECONDS = st.floats(min_value=0.001, max_value=3600.0)
BACKOFFS = st.builds(
    lambda initial, limit, factor, jitter: Backoff(initial, max(initial, limit), factor, jitter),
    SECONDS,
    SECONDS,
    st.floats(min_value=1.0, max_value=10.0),
    st.floats(min_value=0.0, max_value=1.0),
)
FAILURES = st.integers(min_value=1, max_value=10_000)


class InstantClock(ManualClock):
    """Sleeps without waiting, and remembers for how long."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)


class Failing:
    """Fails so many times, then returns its name."""

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.calls, self._times, self._error = 0, times, error or OSError("away")

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._times:
            raise self._error
        return "done"


DELAYS = {
    "it doubles up to its limit": (Backoff(1.0, 30.0), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
    "it grows by its factor": (Backoff(0.01, 10.0, factor=5.0), [0.01, 0.05, 0.25, 1.25]),
    "with a factor of one it does not grow": (Backoff(10.0, 60.0, factor=1.0), [10.0, 10.0, 10.0]),
    "its initial delay may be its limit": (Backoff(5.0, 5.0), [5.0, 5.0]),
}


@pytest.mark.parametrize(("backoff", "delays"), DELAYS.values(), ids=DELAYS.keys())
def test_the_delays_of_a_backoff(backoff: Backoff, delays: list[float]) -> None:
    assert [backoff.delay(failures) for failures in range(1, len(delays) + 1)] == pytest.approx(delays)


@given(BACKOFFS, FAILURES, st.floats(min_value=0.0, max_value=1.0, exclude_max=True))
def test_a_delay_is_within_its_jitter_and_its_limit(backoff: Backoff, failures: int, chance: float) -> None:
    whole = Backoff(backoff.initial_seconds, backoff.limit_seconds, backoff.factor).delay(failures)
    delay = backoff.delay(failures, lambda: chance)
    assert whole * (1 - backoff.jitter) * (1 - 1e-9) <= delay <= whole <= backoff.limit_seconds


@given(BACKOFFS, FAILURES)
def test_without_jitter_no_delay_is_shorter_than_the_one_before(backoff: Backoff, failures: int) -> None:
    assert backoff.delay(failures, lambda: 0.0) <= backoff.delay(failures + 1, lambda: 0.0)


@given(BACKOFFS, st.integers(min_value=1, max_value=20))
def test_after_a_reset_it_begins_with_the_first_delay(backoff: Backoff, failures: int) -> None:
    retry = Retry(backoff, ManualClock(), chance=lambda: 0.0)
    first = retry.failed()
    for _ in range(failures):
        retry.failed()
    retry.reset()
    assert retry.failed() == first


async def test_a_wait_is_at_least_what_the_server_requires() -> None:
    clock = InstantClock()
    retry = Retry(Backoff(1.0, 8.0), clock)
    await retry.wait(at_least_seconds=5.0)
    await retry.wait()
    assert clock.slept == [5.0, 2.0]


def test_one_count_of_failures_serves_two_backoffs() -> None:
    retry = Retry(Backoff(1.0, 30.0), ManualClock())
    assert [retry.failed(), retry.failed(Backoff(0.1, 1.0)), retry.failed()] == [1.0, 0.2, 4.0]


@given(st.integers(min_value=0, max_value=8), st.integers(min_value=1, max_value=8))
def test_a_call_is_made_until_it_succeeds_or_the_tries_are_used_up(failures: int, tries: int) -> None:
    clock, call = InstantClock(), Failing(failures)

    async def run() -> str:
        return await retried(call, Backoff(1.0, 4.0), clock, tries=tries, is_retryable=lambda _: True)

    if failures < tries:
        assert asyncio.run(run()) == "done"
    else:
        with pytest.raises(OSError, match="away"):
            asyncio.run(run())
    assert call.calls == min(failures + 1, tries)
    assert clock.slept == [1.0, 2.0, *[4.0] * 8][: call.calls - 1]


async def test_what_is_not_retryable_is_raised_at_once() -> None:
    clock, call = InstantClock(), Failing(3, ValueError("refused"))
    with pytest.raises(ValueError, match="refused"):
        await retried(call, Backoff(1.0, 1.0), clock, tries=5, is_retryable=lambda error: isinstance(error, OSError))
    assert (call.calls, clock.slept) == (1, [])


async def test_a_cancellation_is_never_retried() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await retried(cancelled, Backoff(1.0, 1.0), InstantClock(), tries=5, is_retryable=lambda _: True)


@given(
    holds_after=st.integers(min_value=0, max_value=100),
    seconds=st.integers(min_value=1, max_value=100),
    initial=st.integers(min_value=1, max_value=20),
)
def test_polling_ends_when_the_condition_holds_or_the_time_is_over(
    holds_after: int, seconds: int, initial: int
) -> None:
    clock = InstantClock()
    began = clock.monotonic()

    def is_done() -> bool:
        return clock.monotonic() >= began + holds_after

    found = asyncio.run(poll(is_done, Backoff(initial, 40.0), clock, seconds=seconds))
    assert found is (holds_after <= seconds)
    assert clock.monotonic() <= began + seconds


async def test_polling_what_holds_already_does_not_wait() -> None:
    clock = InstantClock()
    assert await poll(lambda: True, Backoff(1.0, 1.0), clock, seconds=0.0)
    assert clock.slept == []
