"""The `ResourceMetrics` service: metrics.k8s.io of the cluster that the scheduler runs on, with its own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mooring.base.errors import ApiError, Fault
from mooring.client import ApiClient
from mooring.framework.resource_metrics import NODE_METRICS, NodeUse, node_uses

PATH = f"/apis/{NODE_METRICS.api_version}/{NODE_METRICS.plural}"


class ApiResourceMetrics:
    """One request for all nodes."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def nodes(self, *, timeout_seconds: float = 10.0) -> Sequence[NodeUse]:
        host = self._client.connection.host
        try:
            # The client retries what may be temporary; a list of measurements is soon out of date.
            async with asyncio.timeout(timeout_seconds):
                body = await self._client.transport.request("GET", PATH, seconds=timeout_seconds)
        except TimeoutError as error:
            raise Fault(f"{host} did not return {NODE_METRICS.name} within {timeout_seconds:g} s") from error
        except ApiError as error:
            raise Fault(f"{host} does not return {NODE_METRICS.name}: {_cause(error)}") from error
        return await asyncio.to_thread(node_uses, body, host)


def _cause(error: ApiError) -> str:
    if error.code == 404:
        return "the cluster has no metrics API; install metrics-server"
    if error.code == 503:
        return f"its metrics API is not available (is metrics-server running?): {error.message}"
    if error.code == 403:
        return f"{error.message}; `mooring manifests` writes the rule that is missing"
    return str(error)
