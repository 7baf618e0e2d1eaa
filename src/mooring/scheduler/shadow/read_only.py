"""A client that can only read: no write request leaves this process."""

from __future__ import annotations

from typing import Any

from mooring.base.errors import Fault
from mooring.client import ApiClient, Connection
from mooring.client.transport import Transport


class _ReadingTransport(Transport):
    def _request(self, method: str, path: str, *rest: Any) -> bytes:
        """The bytes of every request."""
        if method != "GET":
            raise Fault(f"a shadow only reads, but was about to send {method} {path}")
        return super()._request(method, path, *rest)


class ReadOnlyClient(ApiClient):
    """Gets, lists and watches; every other verb is a fault before anything is sent."""

    def __init__(self, connection: Connection, **limits: Any) -> None:
        super().__init__(connection, **limits)
        self._own_limits = limits
        paced = {"in_flight": 64, "qps": None, "burst": None, "user_agent": "mooring-shadow", "clock": self.clock}
        self.transport = _ReadingTransport(connection, **(paced | limits))

    def beside(self, user_agent: str) -> ApiClient:
        return ReadOnlyClient(self.connection, **(self._own_limits | {"user_agent": user_agent}))
