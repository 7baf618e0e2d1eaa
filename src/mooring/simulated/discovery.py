"""Which kinds an API server serves, asked of the server: built-in and custom ones alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mooring.base.errors import ApiError, Fault
from mooring.client import ApiClient
from mooring.objects.meta import Kind


class UnknownKind(Fault):
    """The server serves no such kind (yet)."""


class Discovery:
    """Asks once per group and version; a kind that is not there is asked for again next time."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Kind] = {}

    async def kind(self, api_version: str, kind: str) -> Kind:
        """Where the kind is served."""
        if (api_version, kind) not in self._known:
            for found, _ in await self._served(api_version):
                self._known[api_version, found.kind] = found
        try:
            return self._known[api_version, kind]
        except KeyError:
            raise UnknownKind(f"the server has no kind {kind} in {api_version}") from None

    async def namespaced_kinds(self) -> list[Kind]:
        """Every kind whose objects live in namespaces and can be listed and deleted, in one version each."""
        found: dict[tuple[str, str], Kind] = {}
        for api_version in await self._api_versions():
            for kind, verbs in await self._served(api_version):
                if kind.namespaced and {"list", "delete"} <= set(verbs):
                    found.setdefault((kind.group, kind.plural), kind)
        return list(found.values())

    async def _api_versions(self) -> Iterable[str]:
        groups = (await self._get("/apis")).get("groups") or []
        return ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]

    async def _served(self, api_version: str) -> list[tuple[Kind, list[str]]]:
        """Resources of a group and version with their verbs; subresources are left out."""
        group, _, version = api_version.rpartition("/")
        try:
            listed = await self._get(f"/apis/{api_version}" if group else f"/api/{version}")
        except ApiError as error:
            if error.code == 404:
                return []
            raise
        return [
            (Kind(group, version, each["kind"], each["name"], bool(each["namespaced"])), list(each.get("verbs") or ()))
            for each in listed.get("resources") or []
            if "/" not in each["name"]
        ]

    async def _get(self, path: str) -> dict[str, Any]:
        answer = json.loads(await self._client.transport.request("GET", path))
        return answer if isinstance(answer, dict) else {}
