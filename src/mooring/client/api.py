"""The verbs of the Kubernetes API on any kind of object, with its errors as exceptions.

Request and response bodies are plain JSON documents (`dict`), because what is read is often written back and must keep
the fields we do not know. `get_as` and the `Reflector` decode into structs, for callers that only read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from mooring.base.clock import Clock, SystemClock
from mooring.base.errors import ApiError
from mooring.base.nesting import Decoder
from mooring.client.connection import Connection
from mooring.client.fence import WriteFence
from mooring.client.list_pages import ListPages
from mooring.client.transport import RequestObserver, Transport
from mooring.objects import Kind, KubeObject, Pod

T = TypeVar("T", bound=KubeObject)
Document = dict[str, Any]
Documents = list[Document]  # inside the class, `list` is a verb
PatchForm = Literal["strategic", "merge", "json"]

PAGE = 500
FIRST_CONTACT_SECONDS = 8.0
_PATCH_TYPES: dict[PatchForm, str] = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
_encode = msgspec.json.Encoder().encode
_is_plain = re.compile(r"[a-z0-9.-]+").fullmatch
"""Names that need no quoting: nearly all."""
_document_decoder: Decoder[Document] = Decoder(Document)


class ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "next": "continue"}):
    resource_version: str = ""
    next: str = ""


class RawList(msgspec.Struct):
    """A page of a list, its items not decoded yet."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class _DocumentList(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: Documents | None = None


_raw_list_decoder = Decoder(RawList)
_document_list_decoder = Decoder(_DocumentList)


class ApiClient:
    """The client of one API server, for one event loop. Without a namespace, one object is sought in the connection's
    own.

    Every error response is an ApiError; no response at all is Unreachable, whose message names the host and where its
    address came from. After a 429 the request is retried as Retry-After requires. `qps` and `burst` pace the requests
    (none, or a negative qps: no limit); `in_flight` bounds how many wait for a response at once. Watches count in
    neither. `fence` holds writes back while it is closed; `observer` sees every request.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock | None = None,
        user_agent: str = "mooring",
        in_flight: int = 64,
        qps: float | None = None,
        burst: int | None = None,
        fence: WriteFence | None = None,
        observer: RequestObserver | None = None,
    ) -> None:
        self.connection = connection
        self.clock: Clock = clock if clock is not None else SystemClock()
        self._limits: dict[str, Any] = {
            "in_flight": in_flight,
            "qps": qps,
            "burst": burst,
            "fence": fence,
            "observer": observer,
        }
        self.transport = Transport(connection, clock=self.clock, user_agent=user_agent, **self._limits)

    async def __aenter__(self) -> ApiClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    def beside(self, user_agent: str) -> ApiClient:
        """Another one to the same server, with connections and limits of its own: neither waits for the other."""
        return ApiClient(self.connection, clock=self.clock, user_agent=user_agent, **self._limits)

    async def server_version(self) -> Document:
        """The server's `/version`: the first contact. Raises within seconds when the server does not respond."""
        return self._document(await self.transport.request("GET", "/version", seconds=FIRST_CONTACT_SECONDS))

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Document:
        return self._document(await self.transport.request("GET", self._path(kind, namespace, name, subresource)))

    async def get_as(self, type_: type[T], name: str, namespace: str | None = None) -> T:
        body = await self.transport.request("GET", self._path(type_.KIND, namespace, name))
        try:
            return Decoder(type_).decode(body)
        except msgspec.DecodeError as error:
            raise self._unexpected_response(str(error)) from error

    async def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Documents:
        """All objects, of one namespace or of all, page by page."""
        found: Documents = []
        query = selectors(label_selector, field_selector)
        token, pages = "", ListPages(kind)
        while True:
            body = await self.transport.request("GET", list_path(kind, namespace, query, PAGE, token))
            try:
                page = _document_list_decoder.decode(body)
            except msgspec.DecodeError as error:
                raise self._unexpected_response(str(error)) from error
            found += page.items or ()
            token = pages.follow(len(page.items or ()), page.metadata.next)
            if not token:
                return found

    async def list_page(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], *, limit: int, token: str
    ) -> RawList:
        """One page of a list, for callers that decode the items themselves."""
        body = await self.transport.request("GET", list_path(kind, namespace, query, limit, token))
        try:
            return _raw_list_decoder.decode(body)
        except msgspec.DecodeError as error:
            raise self._unexpected_response(str(error)) from error

    async def create(
        self,
        kind: Kind,
        body: Mapping[str, Any] | msgspec.Struct,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
    ) -> Document:
        document = _whole(kind, body)
        namespace = namespace or document.get("metadata", {}).get("namespace") or self.connection.namespace
        path = path_of(kind, namespace, name, subresource)
        return self._document(await self.transport.request("POST", path, _encode(document)))

    async def post(self, kind: Kind, namespace: str, body: bytes) -> None:
        """Create the object whose JSON this is. What the server returns is not decoded."""
        await self.transport.request("POST", path_of(kind, namespace), body)

    async def update(
        self, kind: Kind, body: Mapping[str, Any] | msgspec.Struct, *, subresource: str | None = None
    ) -> Document:
        """Replace the object; a resourceVersion in the body makes it conditional."""
        document = _whole(kind, body)
        metadata = document["metadata"]
        path = self._path(kind, metadata.get("namespace"), metadata["name"], subresource)
        return self._document(await self.transport.request("PUT", path, _encode(document)))

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        subresource: str | None = None,
        form: PatchForm = "strategic",
    ) -> Document:
        path = self._path(kind, namespace, name, subresource)
        return self._document(await self.transport.request("PATCH", path, _encode(body), _PATCH_TYPES[form]))

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        grace_seconds: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete the object; the uid is a precondition, so that a recreated object of the same name stays."""
        options: Document = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        body = _encode(options) if len(options) > 2 else None
        await self.transport.request("DELETE", self._path(kind, namespace, name), body)

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Bind the pod to the node, and add these annotations and labels; the uid is a precondition: a recreated pod
        of the same name is not bound."""
        metadata: Document = {"namespace": namespace, "name": name, "uid": uid}
        if annotations:
            metadata["annotations"] = annotations
        if labels:
            metadata["labels"] = labels
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"kind": "Node", "name": node},
        }
        await self.transport.request("POST", path_of(Pod.KIND, namespace, name, "binding"), _encode(binding))

    def _path(self, kind: Kind, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """One object's path; without a namespace it is looked for in the connection's own, as kubectl does."""
        return path_of(kind, namespace or self.connection.namespace, name, subresource)

    def _document(self, body: bytes) -> Document:
        try:
            return _document_decoder.decode(body)
        except msgspec.DecodeError as error:
            raise self._unexpected_response(str(error)) from error

    def _unexpected_response(self, detail: str) -> ApiError:
        where = self.connection
        return ApiError(
            200, "NotAnApiServer", f"{where.host} (from {where.source}) did not respond like an API server: {detail}"
        )


def path_of(kind: Kind, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """The URL path, with names made safe: a name must never reach into another object's path."""
    if name is not None and (not name or name in (".", "..")):
        raise ValueError(f"{name!r} cannot be the name of an object")
    if namespace in (".", ".."):
        raise ValueError(f"{namespace!r} cannot be the name of a namespace")
    if namespace and not _is_plain(namespace):
        namespace = quote(namespace, safe="")
    if name and not _is_plain(name):
        name = quote(name, safe=":")
    return kind.path(namespace, name, subresource)


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    query = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in query.items() if value}


def list_path(kind: Kind, namespace: str | None, query: Mapping[str, str], limit: int, token: str) -> str:
    wanted = dict(query)
    if limit:
        wanted["limit"] = str(limit)
    if token:
        wanted["continue"] = token
    path = path_of(kind, namespace)
    return f"{path}?{urlencode(wanted)}" if wanted else path


def _whole(kind: Kind, body: Mapping[str, Any] | msgspec.Struct) -> Document:
    """The document with its apiVersion and kind, which our structs do not carry."""
    if not isinstance(body, msgspec.Struct):
        return {"apiVersion": kind.api_version, "kind": kind.kind, **body}
    own = {"apiVersion": getattr(body, "api_version", kind.api_version), "kind": getattr(body, "kind", kind.kind)}
    document: Document = msgspec.to_builtins(body)
    return own | document
