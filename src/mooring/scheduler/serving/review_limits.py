"""How many TokenReviews and SubjectAccessReviews clients may cause.

Every unknown token and every new path is one request to the API server. A client's share is bounded in rate and in
number at once, and so is the sum. What the API server confirmed before (a valid token, an allowed request) is renewed
without limit, so that untrusted clients cannot keep a Prometheus from scraping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mooring.base.rates import Rates
from mooring.scheduler.serving.users import TooManyRequests

OF_A_CLIENT_PER_SECOND, BURST_OF_A_CLIENT = 5.0, 20.0
PER_SECOND, BURST = 50.0, 100.0
AT_ONCE_OF_A_CLIENT, AT_ONCE = 4, 16


class ReviewLimits:
    """Shared by authentication and authorization. `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._of_a_client = Rates(now, per_second=OF_A_CLIENT_PER_SECOND, burst=BURST_OF_A_CLIENT)
        self._total = Rates(now, per_second=PER_SECOND, burst=BURST)
        self._running: Counter[str] = Counter()

    @contextmanager
    def review(self, client: str, *, is_known: bool) -> Iterator[None]:
        """Around one review. Raises `TooManyRequests`."""
        if is_known:
            yield
            return
        if (
            self._running[client] >= AT_ONCE_OF_A_CLIENT
            or self._running.total() >= AT_ONCE
            or not self._of_a_client.take(client)
            or not self._total.take("")
        ):
            raise TooManyRequests
        self._running[client] += 1
        try:
            yield
        finally:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]
