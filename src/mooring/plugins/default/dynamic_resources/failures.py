"""How a search for devices can end badly: an error of the whole attempt, or of one node."""

from __future__ import annotations

from mooring.base.errors import Fault


class AllocationFault(Fault):
    """Something is wrong with a claim, a class or a pool: the attempt fails and the pod is tried again with backoff."""


class NoAllocationHere(Exception):
    """Something is wrong with this node's pools: the node is refused with this text, others are looked at."""
