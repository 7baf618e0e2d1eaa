"""Memory: the garbage collector of processes that run for long, pages that are no longer used, and what there is."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from mooring.base.errors import OperatorMistake

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
LEAST_LIMIT = 2 * 1024**3
"""Of a process that limits its own memory."""


def available_bytes() -> int | None:
    """What this process may still use without swapping or meeting its limits; None where it is not known."""
    return min(_bounds(), default=None)


def _bounds() -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        [line] = [each for each in _MEMINFO.read_text().splitlines() if each.startswith("MemAvailable:")]
        yield int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):
        most, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        if most != "max":
            yield max(int(most) - int(used), 0)


def refuse_without_memory(what: str, count: int, bytes_each: int) -> None:
    """A number that was mistyped must not take the memory of the machine: refuse it before anything is made."""
    available = available_bytes()
    if available is not None and count * bytes_each > available:
        raise OperatorMistake(
            f"{count:,} {what} need about {_gigabytes(count * bytes_each)} of memory, and {_gigabytes(available)} are "
            "available."
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"


def limit_own_memory() -> int | None:
    """Let this process have at most half of the machine's memory, so that it ends before the machine suffers.

    Returns the limit in bytes; None where there is no such limit. Address space that is only reserved does not count.
    """
    with contextlib.suppress(OSError, ValueError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        before, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = max(total // 2, LEAST_LIMIT)
        if before == resource.RLIM_INFINITY or limit < before:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
            return limit
    return None


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
