"""What a gate does when nothing can be accepted, and how its limits follow from the process's descriptors."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from mooring.base import gate as gate_module
from mooring.base.gate import Gate, GateLimits
from mooring.base.tls import make_identity


class Exhausted:
    """A listening socket that never accepts for want of descriptors, around a real one that can be watched."""

    def __init__(self, real: socket.socket, reason: int) -> None:
        self._real = real
        self._reason = reason
        self._tries = 0
        self.often_tried = asyncio.Event()

    def accept(self) -> Any:
        self._tries += 1
        if self._tries == 20:
            self.often_tried.set()
        raise OSError(self._reason, "no more")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.ENFILE, errno.EPERM])
async def test_accepting_pauses_while_it_fails(monkeypatch, capfd, reason):
    monkeypatch.setattr(gate_module, "PAUSE_SECONDS", 0.01)
    context = make_identity(["localhost"], "a test").ssl_context()
    real = socket.create_server(("127.0.0.1", 0))
    listening: Any = Exhausted(real, reason)
    gate = Gate(listening, context, asyncio.Protocol, log_name="test")
    with socket.create_connection(real.getsockname()):
        await listening.often_tried.wait()
    gate.close()
    gate.close()
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert len(gate) == 0


@pytest.mark.parametrize(("descriptors", "most", "of_a_client"), [(1_048_576, 256, 64), (360, 90, 45), (20, 8, 4)])
def test_connections_take_a_share_of_the_descriptors(descriptors, most, of_a_client):
    limits = GateLimits().within(descriptors)
    assert (limits.connections, limits.connections_of_a_client) == (most, of_a_client)
