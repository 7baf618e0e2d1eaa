"""Subresources that need real containers (logs, exec, attach, port-forward), and tokens: rejected with the reason."""

from __future__ import annotations

from typing import NoReturn

from mooring.apiserver.documents import Document
from mooring.apiserver.status import StatusError
from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest


class Unsupported(SubresourceHandler):
    """Rejects every request for an existing object with a sentence."""

    def __init__(self, why: str) -> None:
        self._why = why

    def sentence(self, call: SubresourceRequest) -> str:
        return self._why

    def _reject(self, call: SubresourceRequest) -> NoReturn:
        route = call.route
        call.registry.stored(route.row, route.namespace, route.name)
        raise StatusError(400, "BadRequest", self.sentence(call))

    def get(self, call: SubresourceRequest) -> Document:
        self._reject(call)

    def post(self, call: SubresourceRequest) -> Document:
        self._reject(call)

    def put(self, call: SubresourceRequest) -> Document:
        self._reject(call)


class NeedsContainer(Unsupported):
    def sentence(self, call: SubresourceRequest) -> str:
        return f'{call.route.row.singular} "{call.route.name}" is simulated: {self._why}'
