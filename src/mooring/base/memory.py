"""Python's garbage collector, in processes that keep much for long."""

from __future__ import annotations

import gc


def keep_collector_calm() -> None:
    """For a process that is about to do the same for a long time: what it holds now lives long and forms no cycles.

    Looking through all of it for cycles, again and again as it grows, finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
