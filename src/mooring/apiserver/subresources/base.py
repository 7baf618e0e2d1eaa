"""The base of subresource handlers, and their requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mooring.apiserver.documents import Document
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.routes import Route
from mooring.apiserver.status import method_not_allowed

if TYPE_CHECKING:
    from multidict import MultiMapping


@dataclass
class SubresourceRequest:
    """One request to a subresource."""

    registry: ResourceRegistry
    route: Route
    query: MultiMapping[str]
    body: Any


class SubresourceHandler:
    """Serves the methods that a subclass implements; the others are not allowed."""

    def get(self, call: SubresourceRequest) -> Document:
        raise method_not_allowed()

    def post(self, call: SubresourceRequest) -> Document:
        raise method_not_allowed()

    def put(self, call: SubresourceRequest) -> Document:
        raise method_not_allowed()
