"""A list as a feed receives it from a reflector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from mooring.client import Feed
from mooring.objects.meta import KubeObject
from mooring.scheduler.watching.observed_feed import EventHandler

K = TypeVar("K", bound=KubeObject)


def list_into(feed: Feed[K] | EventHandler[K], objects: Sequence[K]) -> None:
    """Every object, and then the end of the list."""
    for each in objects:
        feed.found(each)
    feed.listed({each.key: each.uid for each in objects})
