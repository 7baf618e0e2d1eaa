"""Rate limits by key: how often one client address may cause work.

Each key has a token bucket: `burst` tokens at first, refilled at `per_second`. The number of keys is bounded; the key
that was used least recently is dropped first, and has a full bucket when it comes back.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST_KEYS = 4_096


class Rates:
    """Token buckets by key. `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float], *, per_second: float, burst: float) -> None:
        self._now = now
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable) -> bool:
        """Take a token; False: none is left, and the work must not be done now."""
        now = self._now()
        tokens, since = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_second)
        is_allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if is_allowed else tokens, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return is_allowed


def client_key(address: str) -> str:
    """What limits count as one client: an IPv4 address, or the /64 network of an IPv6 address.

    A host usually has a whole /64 to take addresses from.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
