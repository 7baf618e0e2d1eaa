"""Ports for programs that must get theirs before they start."""

from __future__ import annotations

import random
import socket

# Below those that Linux gives to outgoing connections and to port 0: between the choice and the start of the program
# no other process gets one of them by chance.
PORTS = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Different ports that no process listens on."""
    # The machine's own dice: each worker's `random` is seeded alike, and they would choose the same.
    dice, found = random.SystemRandom(), set[int]()
    while len(found) < count:
        port = dice.choice(PORTS)
        if _is_free(port):
            found.add(port)
    return list(found)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
