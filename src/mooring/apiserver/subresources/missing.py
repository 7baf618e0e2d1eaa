"""What only real containers could answer: logs, exec, attach, port-forward. Refused with the reason."""

from __future__ import annotations

from typing import NoReturn

from mooring.apiserver.documents import Document
from mooring.apiserver.status import Refused
from mooring.apiserver.subresources.base import Call, SubresourceHandler


class NoContainers(SubresourceHandler):
    def __init__(self, why: str) -> None:
        self._why = why

    def _refuse(self, call: Call) -> NoReturn:
        route = call.route
        call.registry.stored(route.row, route.namespace, route.name)
        message = f'{route.row.singular} "{route.name}" is simulated: {self._why}'
        raise Refused(400, "BadRequest", message)

    def get(self, call: Call) -> Document:
        self._refuse(call)

    def post(self, call: Call) -> Document:
        self._refuse(call)
