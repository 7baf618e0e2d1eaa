"""Maps an apiVersion and kind to its resource by the server's discovery, for built-in and custom kinds."""

from __future__ import annotations

from typing import Any

from mooring.base.errors import ApiError, Fault
from mooring.base.nesting import decode
from mooring.client.api import ApiClient
from mooring.objects.meta import Kind


class NoKindMatch(Fault):
    """The server serves no such kind (yet)."""


class RestMapper:
    """Requests discovery once per group and version, and again for a kind that is not known yet."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Kind] = {}

    async def kind(self, api_version: str, kind: str) -> Kind:
        """The resource of the kind."""
        if (api_version, kind) not in self._known:
            for found in await self._served(api_version):
                self._known[api_version, found.kind] = found
        try:
            return self._known[api_version, kind]
        except KeyError:
            raise NoKindMatch(f"the server has no kind {kind} in {api_version}") from None

    async def _served(self, api_version: str) -> list[Kind]:
        """The resources of a group and version, without subresources."""
        group, _, version = api_version.rpartition("/")
        try:
            listed = await self._get(f"/apis/{api_version}" if group else f"/api/{version}")
        except ApiError as error:
            if error.code == 404:
                return []
            raise
        return [
            Kind(group, version, each["kind"], each["name"], bool(each["namespaced"]))
            for each in listed.get("resources") or []
            if "/" not in each["name"]
        ]

    async def _get(self, path: str) -> dict[str, Any]:
        body = decode(await self._client.transport.request("GET", path))
        return body if isinstance(body, dict) else {}
