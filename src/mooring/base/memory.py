"""Memory of processes that run for long: the garbage collector, and pages that are no longer used."""

from __future__ import annotations

import ctypes
import gc


def collect_rarely() -> None:
    """For a process that starts: what it makes lives long and forms no cycles.

    Looking through all of it for cycles, again and again as it grows, finds nothing.
    """
    gc.set_threshold(50_000, 50, 100)


def keep_collector_calm() -> None:
    """For a process that is about to do the same for a long time: what it holds now is not looked through again."""
    collect_rarely()
    gc.collect(0)
    gc.freeze()


def give_back_pages() -> None:
    """Return free pages of the C library's heap to the system: by itself it keeps them after a burst."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others give back by themselves
    if trim is not None:
        trim(ctypes.c_size_t(0))
