"""Room for deep expressions.

An expression may be nested 250 deep, and each level takes several Python calls to read, check and plan: more than
Python allows by default. While an expression is compiled, it is allowed more; how deep it can get is bounded by the
parser, and Python's own calls take no room on the machine's stack.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ROOM = 12_000


@contextmanager
def room_for_deep_expressions() -> Iterator[None]:
    """Raises Python's limit for the block, if it is lower."""
    before = sys.getrecursionlimit()
    if before >= _ROOM:
        yield
        return
    sys.setrecursionlimit(_ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
