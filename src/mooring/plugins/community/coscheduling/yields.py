"""Which groups have released their nodes for which other one, and until when.

A group yields to another one once, until that one is placed or fails. If it fails, the yield was in vain: for some
minutes the group yields to none of that namespace. So groups that cannot be placed keep others from their nodes once at
most, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from mooring.framework import Clock
from mooring.plugins.community.coscheduling.failures import MOST_KEPT, ExpiringKeys
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup

IN_VAIN_SECONDS = 300.0


class Yields:
    """By group (namespace/name)."""

    def __init__(self, clock: Clock, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._yielded_to: dict[str, set[str]] = {}
        """The groups that yielded to a group, until that one is placed or fails."""
        self._first: dict[str, str] = {}
        """The group that a group yields to, until it has a node again."""
        self._in_vain = ExpiringKeys(clock)

    def may(self, group: CoschedulingGroup, first: CoschedulingGroup) -> bool:
        """Whether the group has not yielded to the other one yet, nor in vain."""
        return group.key not in self._yielded_to.get(first.key, ()) and not self._in_vain.left(_pair(group, first))

    def note(self, group: CoschedulingGroup, first: CoschedulingGroup) -> None:
        """The group releases its nodes for the other one."""
        if max(len(self._yielded_to), len(self._first)) >= MOST_KEPT:
            self._yielded_to = {each: groups for each, groups in self._yielded_to.items() if self._exists(each)}
            self._first = {each: other for each, other in self._first.items() if self._exists(each)}
        self._yielded_to.setdefault(first.key, set()).add(group.key)
        self._first[group.key] = first.key

    def first_of(self, group: str) -> str | None:
        """The group that this one yields to."""
        return self._first.get(group)

    def end(self, group: str) -> None:
        """It has a node again."""
        self._first.pop(group, None)

    def settle(self, first: str) -> Collection[str]:
        """The group was placed, failed or is gone. Returns the groups that yielded to it."""
        return self._yielded_to.pop(first, ())

    def was_in_vain(self, group: CoschedulingGroup, first: CoschedulingGroup) -> None:
        self._in_vain.add(_pair(group, first), IN_VAIN_SECONDS)


def _pair(group: CoschedulingGroup, first: CoschedulingGroup) -> str:
    """Tenants are namespaces: they may have any number of groups."""
    return f"{group.key} {first.key if first.namespace == group.namespace else first.namespace}"
