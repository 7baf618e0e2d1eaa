"""How much work something is: calls of Python and C functions. A busy machine does not change the number.

assert calls_of(lambda: decide(profile, pod, state)) < 10_000
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    before = sys.getprofile()
    gc.disable()  # finalizers are calls, too
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls
