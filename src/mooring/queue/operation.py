"""A change of the queue as one thing: what plugins ask of the queue while they are asked is done when it ends."""

from __future__ import annotations

from collections.abc import Callable


class Operation:
    """`with` it, the queue is being changed. Settles at the end of the outermost one."""

    __slots__ = ("_depth", "_settle")

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle = settle
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        try:
            if self._depth == 1:
                self._settle()
        finally:
            self._depth -= 1
