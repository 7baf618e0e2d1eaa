"""Runs what brings an event loop of its own, also where one runs already: in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_own_loop(run: Callable[[], T]) -> T:
    """Call it here, or in another thread where this one's event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1, "simulation") as threads:
        return threads.submit(run).result()
