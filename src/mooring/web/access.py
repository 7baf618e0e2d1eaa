"""The rights of a request: of the operator who started the page on their own machine, or of a user of the cluster."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

from mooring.web.errors import RequestError

NO_TOKEN = "no token was sent; open the link that `mooring web` has printed"
WRONG_TOKEN = "the token is not valid; open the link that `mooring web` has printed last"


@dataclass(frozen=True)
class Rights:
    """What the user of a request may read."""

    user: str
    nodes: bool = True
    all_namespaces: bool = True
    namespaces: frozenset[str] = frozenset()
    token: str = field(default="", repr=False)
    """Their own, for what they do in the cluster; "": the operator's kubeconfig is used."""

    def may_see(self, namespace: str) -> bool:
        return self.all_namespaces or namespace in self.namespaces

    def check_namespace(self, namespace: str) -> None:
        if not self.may_see(namespace):
            where = f'pods in namespace "{namespace}"; a Role that allows it is needed there.'
            raise RequestError(403, f'user "{self.user}" may not list {where}')

    def check_nodes(self) -> None:
        if not self.nodes:
            raise RequestError(403, f'user "{self.user}" may not list nodes; a ClusterRole that allows it is needed.')


class PageAccess(Protocol):
    """Who may read what."""

    async def rights(self, request: web.BaseRequest, token: str) -> Rights:
        """Of this request. Raises `RequestError`."""
        ...


class OperatorAccess:
    """One secret token, for the operator: its bearer sees what the operator's kubeconfig sees."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)

    async def rights(self, request: web.BaseRequest, token: str) -> Rights:
        if not token:
            raise RequestError(401, NO_TOKEN, field="link")
        if not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self.token.encode()):
            raise RequestError(401, WRONG_TOKEN, field="link")
        return Rights("the operator")


def bearer(request: web.BaseRequest) -> str:
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""
