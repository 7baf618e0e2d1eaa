"""Retries: how long to wait between tries, how often to try, and polling until something holds.

A `Backoff` is a description: the first delay, its growth, its limit and its jitter. `Retry` counts failures in a row
and waits by it, for loops with rules of their own; `retried` and `poll` are the two loops without any. Clock and
randomness are injected.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import random
from typing import TypeVar

from mooring.base.clock import Clock

T = TypeVar("T")

_MOST_DOUBLINGS = 64
"""No backoff grows beyond this many steps: its limit is reached long before, and the power stays a float."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between tries: `initial`, then `factor` times the last one, up to `limit`.

    Of each delay the share `jitter` is random, so that many clients do not retry in step: 0.5 gives between half of it
    and all of it.
    """

    initial_seconds: float
    limit_seconds: float
    factor: float = 2.0
    jitter: float = 0.0

    def delay(self, failures: int, chance: Callable[[], float] = random) -> float:
        """The delay after so many failures in a row, of which there is at least one."""
        grown = self.initial_seconds * self.factor ** min(failures - 1, _MOST_DOUBLINGS)
        return min(grown, self.limit_seconds) * (1.0 - self.jitter * chance())


class Retry:
    """Failures in a row, and the wait after each."""

    def __init__(self, backoff: Backoff, clock: Clock, chance: Callable[[], float] = random) -> None:
        self._backoff, self._clock, self._chance = backoff, clock, chance
        self.failures = 0

    def failed(self, backoff: Backoff | None = None) -> float:
        """Count a failure; how long to wait before the next try, by another backoff if one is given."""
        self.failures += 1
        return (backoff or self._backoff).delay(self.failures, self._chance)

    async def wait(self, at_least_seconds: float = 0.0) -> None:
        """Count a failure, and wait."""
        await self._clock.sleep(max(self.failed(), at_least_seconds))

    def reset(self) -> None:
        """A try succeeded, or the next failure is of another kind: begin with the first delay."""
        self.failures = 0


async def retried(
    call: Callable[[], Awaitable[T]],
    backoff: Backoff,
    clock: Clock,
    *,
    tries: int,
    is_retryable: Callable[[Exception], bool],
) -> T:
    """What the call returns, called up to `tries` times. Raises what the last one raised, or what is not retryable."""
    retry = Retry(backoff, clock)
    while True:
        try:
            return await call()
        except Exception as error:
            if retry.failures + 1 >= tries or not is_retryable(error):
                raise
        await retry.wait()


async def poll(is_done: Callable[[], bool], backoff: Backoff, clock: Clock, *, seconds: float) -> bool:
    """Whether the condition held within the time. It is checked at the start, after each delay, and at the end."""
    retry, deadline = Retry(backoff, clock), clock.monotonic() + seconds
    while not is_done():
        left = deadline - clock.monotonic()
        if left <= 0:
            return False
        await clock.sleep(min(retry.failed(), left))
    return True
