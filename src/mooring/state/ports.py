"""Host ports in use, by port: which rows have a pod that holds it. Pods without host ports never come here."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import BoolArray
from mooring.objects.placed import ANY_ADDRESS, HostPort
from mooring.state.row_counts import RowCounts


class PortsInUse:
    """Which rows hold which host port. A port on all addresses (0.0.0.0) and the same port on one address conflict."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, int], dict[str, RowCounts]] = {}
        """(protocol, port) → address → the pods that hold it, by row."""
        self.freed: dict[int, set[HostPort]] = {}
        """By row, the ports that are free in a what-if, although another pod may hold them too.

        kube-scheduler keeps a node's ports as a set, so that in its dry runs a port is free as soon as one of its
        holders is evicted. Two pods that hold one port are rare; a plan that differs would not be right for it.
        """

    def count(self, row: int, ports: Iterable[HostPort], sign: int) -> None:
        """A pod with these ports comes onto a row (1) or leaves it (-1)."""
        for address, protocol, port in ports:
            by_address = self._holders.setdefault((protocol, port), {})
            holders = by_address.get(address)
            if holders is None:
                holders = by_address[address] = RowCounts()
            holders.add(row, sign)
            if not holders:
                del by_address[address]
                if not by_address:
                    del self._holders[protocol, port]

    def free_in_what_if(self, row: int, ports: Iterable[HostPort]) -> None:
        self.freed.setdefault(row, set()).update(ports)

    def take_in_what_if(self, row: int, ports: Iterable[HostPort]) -> None:
        if free := self.freed.get(row):
            free.difference_update(ports)
            if not free:
                del self.freed[row]

    def freed_at(self, row: int) -> frozenset[HostPort]:
        return frozenset(self.freed.get(row, ()))

    def restore(self, row: int, free: frozenset[HostPort]) -> None:
        """As it was before a what-if."""
        if free:
            self.freed[row] = set(free)
        else:
            self.freed.pop(row, None)

    def where_taken(self, wanted: Iterable[HostPort], capacity: int) -> BoolArray | None:
        """The rows, as a mask over the whole table, where one of these ports is taken; None: nowhere."""
        found: BoolArray | None = None
        for address, protocol, port in wanted:
            for held, holders in self._holders.get((protocol, port), {}).items():
                if address in (held, ANY_ADDRESS) or held == ANY_ADDRESS:
                    mask = self._really(holders.mask(capacity), (held, protocol, port))
                    found = mask if found is None else found | mask
        return found

    def _really(self, mask: BoolArray, port: HostPort) -> BoolArray:
        freed = [row for row, free in self.freed.items() if port in free]
        if freed:
            mask = mask.copy()
            mask[freed] = False
        return mask
