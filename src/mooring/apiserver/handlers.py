"""HTTP: which verb a request means, and how its answer is written. Rules live in the registry and strategies."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aiohttp import web

from mooring.apiserver import discovery
from mooring.apiserver.documents import Document, encode, part
from mooring.apiserver.json_patch import json_patch
from mooring.apiserver.lists import list_body, list_page
from mooring.apiserver.negotiation import checked_as, parse_body, shape_of, typed
from mooring.apiserver.openapi import V2_ASKED, V2_EMPTY, V2_TYPE, OpenApi
from mooring.apiserver.options import FieldPolicy, ListOptions, boolean, delete_options, list_options, write_options
from mooring.apiserver.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    merge_patch,
    strategic_patch,
)
from mooring.apiserver.registry import Change, Deletion, Registry
from mooring.apiserver.resources import Resource
from mooring.apiserver.routes import Route, find_route
from mooring.apiserver.selection_predicate import Selection, parse_selection
from mooring.apiserver.status import (
    Refused,
    bad_request,
    method_not_allowed,
    no_such_path,
    success,
    too_large,
    too_many_requests,
    unauthorized,
    unsupported_media_type,
)
from mooring.apiserver.storage import Stored
from mooring.apiserver.streaming import streamed
from mooring.apiserver.subresources import Call, special_handlers
from mooring.apiserver.tables import Tables
from mooring.apiserver.watch_server import WatchAnswer
from mooring.base.log import Log
from mooring.base.nesting import TooDeep, refuse_deep

JSON_TYPE = "application/json"
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
VERSION_PATHS = ("/version", "/version/")
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
LARGEST_BODY = 3 * 1024 * 1024
MOST_IN_FLIGHT = 600
"""Requests that are read, worked on or answered at once, watches apart; as many as kube-apiserver serves by default."""
REQUEST_SECONDS = 60.0
DELETED_AT_ONCE = 100
LONG_YAML = 64 * 1024
LONGEST_WARNING, MOST_WARNING_TEXT = 256, 4096
APPLY_REFUSAL = (
    "server-side apply is not supported by Mooring's embedded API server;"
    " use kubectl apply without --server-side, or a patch"
)


class Handler:
    """Answers every request of the server."""

    def __init__(self, registry: Registry, token: str, log: Log) -> None:
        self._registry = registry
        self._table = registry.table
        self._expected = f"Bearer {token}".encode()
        self._tables = Tables(registry.world.clock)
        self._special = special_handlers(token)
        self._openapi = OpenApi(registry.table)
        self._log = log
        self._in_flight: dict[int, tuple[web.BaseRequest, float]] = {}
        self.on_authenticated: Callable[[web.BaseRequest], None] = lambda _: None
        self.address = ""
        self.is_stopping = False

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.is_stopping:
            return _last_answer()
        if _is_watch(request):
            return await self._answered(request)
        if len(self._in_flight) >= MOST_IN_FLIGHT:
            return refusal(too_many_requests())
        self._in_flight[id(request)] = request, time.monotonic()
        try:
            response = await self._answered(request)
            # Written here, so that a client that does not read is subject to the time limit, too.
            await response.prepare(request)
            await response.write_eof()
        finally:
            del self._in_flight[id(request)]
        return response

    async def cut_slow_requests(self) -> None:
        """Cut the connections of clients that neither send their request nor read the response in time, for ever."""
        while True:
            await asyncio.sleep(REQUEST_SECONDS / 6)
            self._cut(time.monotonic() - REQUEST_SECONDS)

    def _cut(self, latest: float) -> None:
        for request, since in list(self._in_flight.values()):
            if since < latest and request.transport is not None:
                request.transport.abort()

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Refused as refused:
            return refusal(refused)
        except web.HTTPRequestEntityTooLarge:
            return refusal(too_large(f"limit is {LARGEST_BODY}"))
        except RecursionError:
            return refusal(bad_request("the object provided is nested too deeply"))
        except ConnectionError:
            raise
        except Exception as fault:
            self._log.error("Request failed", method=request.method, path=request.path, err=repr(fault))
            if debug := self._log.v(4):
                import traceback

                debug.info(traceback.format_exc())
            return refusal(Refused(500, "InternalError", f"Internal error occurred: {fault}"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        parts = path.strip("/").split("/")
        if path in HEALTH_PATHS:
            return web.Response(text="ok")
        if path in VERSION_PATHS:
            if request.method not in ("GET", "HEAD"):
                raise method_not_allowed()
            return answer(encode(discovery.version()))
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._expected):
            raise unauthorized()
        self.on_authenticated(request)
        if path.removesuffix("/ping") in HEALTH_PATHS:
            return web.Response(text="ok")
        route = find_route(self._table, parts) if parts[0] in ("api", "apis") else None
        if route is None:
            return self._discovery(request, path, parts)
        return await self._resource(request, route)

    def _discovery(self, request: web.BaseRequest, path: str, parts: list[str]) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            raise no_such_path()
        accept = request.headers.get("Accept", "")
        found: Document | None = None
        if path.rstrip("/") in ("/api", "/apis"):
            is_core = parts[0] == "api"
            if discovery.AGGREGATED in accept.replace(" ", ""):
                body = encode(discovery.aggregated(self._table, core=is_core))
                return answer(body, content_type=discovery.AGGREGATED_TYPE)
            found = discovery.core_versions(self.address) if is_core else discovery.groups(self._table)
        elif parts[0] == "api" and len(parts) == 2:
            found = discovery.resources(self._table, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.group(self._table, parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.resources(self._table, parts[1], parts[2])
        elif path == "/openapi/v2" and V2_ASKED in accept:
            return answer(V2_EMPTY, content_type=V2_TYPE)
        elif path == "/openapi/v3":
            return answer(self._openapi.root())
        elif path.startswith("/openapi/v3/"):
            described = self._openapi.group_version(path.removeprefix("/openapi/v3/"))
            if described is None:
                raise no_such_path()
            return answer(described)
        elif path == "/":
            found = {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]}
        if found is None:
            raise no_such_path()
        return answer(encode(found))

    async def _resource(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        method = request.method
        if route.subresource:
            return await self._subresource(request, route)
        if method in ("GET", "HEAD"):
            return await self._read(request, route)
        if method == "POST" and not route.name:
            return await self._create(request, route)
        if method == "PUT" and route.name:
            return await self._replace(request, route)
        if method == "PATCH" and route.name:
            return await self._patch(request, route)
        if method == "DELETE":
            return await self._delete(request, route)
        raise method_not_allowed()

    # Reading

    async def _read(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        row, query = route.row, request.query
        wanted = "get" if route.name else "list"
        if wanted not in row.verbs:
            raise method_not_allowed()
        options = list_options(query)
        # A HEAD response has no body, so it cannot be a stream of events.
        is_watch = options.is_watch and request.method == "GET"
        shape = shape_of(request.headers.get("Accept", ""))
        include = query.get("includeObject", "")
        if route.name and not is_watch:
            stored = self._registry.stored(row, route.namespace, route.name)
            if shape == "object":
                return answer(stored.seen(row.to_view)[1])
            return answer(self._tables.one(row, stored, shape, include))
        selection = self._selection(row, route, query)
        if is_watch:
            show = None if shape == "object" else self._tables.shower(row, shape, include)
            watch = WatchAnswer(self._registry.store, self._registry.world.clock, row, selection, options, show)
            return await watch.serve(request)
        page = list_page(self._registry.store, row, selection, options)
        parts = list_body(row, page) if shape == "object" else self._tables.many(row, page, shape, include)
        return await streamed(request, parts, JSON_TYPE)

    def _selection(self, row: Resource, route: Route, query: Mapping[str, str]) -> Selection:
        fields = self._registry.strategy_of(row).fields
        return parse_selection(route.namespace, query, fields, route.name)

    # Writing

    async def _create(self, request: web.BaseRequest, route: Route) -> web.Response:
        row, query = route.row, request.query
        if "create" not in row.verbs:
            raise method_not_allowed()
        options = write_options(query)
        body = await body_of(request)
        call = Call(self._registry, route, query, body)
        if (special := self._special.get((row.storage, ""))) is not None:
            return answer(encode(special.post(call)), 201)
        document = typed(body, row, options.policy)
        namespace = route.namespace
        if row.namespaced and not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        stored = self._registry.create(row, namespace, document, dry_run=options.dry_run)
        if notice := self._registry.strategy_of(row).notice:
            options.policy.warnings.append(notice)
        return self._written(request, row, stored, options.policy, 201)

    async def _replace(self, request: web.BaseRequest, route: Route, *, status: bool = False) -> web.Response:
        row, query = route.row, request.query
        options = write_options(query, "UpdateOptions")
        body = await body_of(request)
        document = typed(body, row, options.policy)
        stored, is_new = self._registry.update(
            row, route.namespace, route.name, lambda _: document, status=status, dry_run=options.dry_run
        )
        return self._written(request, row, stored, options.policy, 201 if is_new else 200)

    async def _patch(self, request: web.BaseRequest, route: Route, *, status: bool = False) -> web.Response:
        row, query = route.row, request.query
        content_type = request.headers.get("Content-Type", "")
        kind = patch_kind(content_type)
        options = write_options(query, "PatchOptions")
        change = patch_change(row, kind, parse_body(await request.read(), content_type), options.policy)
        # Kinds that a PUT may create (leases, events) are not created from a patch: there is nothing to patch.
        self._registry.stored(row, route.namespace, route.name)
        stored, _ = self._registry.update(
            row, route.namespace, route.name, change, status=status, dry_run=options.dry_run
        )
        return self._written(request, row, stored, options.policy, 200)

    def _written(
        self, request: web.BaseRequest, row: Resource, stored: Stored, policy: FieldPolicy, code: int
    ) -> web.Response:
        shape = shape_of(request.headers.get("Accept", ""))
        if shape == "object":
            body = stored.seen(row.to_view)[1]
        else:
            body = self._tables.one(row, stored, shape, request.query.get("includeObject", ""))
        return answer(body, code, warnings=policy.warnings)

    async def _delete(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        row, query = route.row, request.query
        if ("delete" if route.name else "deletecollection") not in row.verbs:
            raise method_not_allowed()
        asked = await deletion_asked(request)
        if not route.name:
            parts = await self._delete_collection(route, query, asked)
            return await streamed(request, parts, JSON_TYPE)
        document, is_gone = self._registry.delete(row, route.namespace, route.name, asked)
        if is_gone and row.storage != "pods":
            about = {"name": route.name, "kind": row.plural, "uid": document["metadata"]["uid"]}
            return answer(encode(success(about | ({"group": row.group} if row.group else {}))))
        return answer(encode(row.to_view(document)))

    async def _delete_collection(self, route: Route, query: Mapping[str, str], asked: Deletion) -> Iterator[bytes]:
        row, options = route.row, list_options(query)
        selected = ListOptions(limit=options.limit, token=options.token)
        page = list_page(self._registry.store, row, self._selection(row, route, query), selected)
        for number, stored in enumerate(page.found):
            if number % DELETED_AT_ONCE == DELETED_AT_ONCE - 1:
                await asyncio.sleep(0)
            metadata = stored.document["metadata"]
            try:
                self._registry.delete(row, metadata.get("namespace", ""), metadata["name"], asked)
            except Refused as refused:
                # Another request may have deleted it in between.
                if refused.code != 404:
                    raise
        return list_body(row, page)

    # Subresources

    async def _subresource(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        row, sub, method = route.row, route.subresource, request.method
        if sub == "status":
            if method in ("GET", "HEAD"):
                stored = self._registry.stored(row, route.namespace, route.name)
                return answer(stored.seen(row.to_view)[1])
            if method == "PUT":
                return await self._replace(request, route, status=True)
            if method == "PATCH":
                return await self._patch(request, route, status=True)
            raise method_not_allowed()
        special = self._special.get((row.storage, sub)) or self._special.get(("*", sub))
        if special is None:
            raise no_such_path()
        raw = await request.read()
        content_type = request.headers.get("Content-Type", "")
        body = await body_of(request) if raw and method != "PATCH" else None
        call = Call(self._registry, route, request.query, body)
        if method in ("GET", "HEAD"):
            return answer(encode(special.get(call)))
        if method == "POST":
            return answer(encode(special.post(call)), 201)
        if method == "PUT":
            return answer(encode(special.put(call)))
        if method == "PATCH":
            current = special.get(call)
            call.body = free_patch(current, raw, content_type)
            return answer(encode(special.put(call)))
        raise method_not_allowed()


async def body_of(request: web.BaseRequest) -> Any:
    """The body, parsed. Long YAML takes seconds, so it is parsed while other requests are served."""
    raw, content_type = await request.read(), request.headers.get("Content-Type", "")
    if "yaml" in content_type and len(raw) > LONG_YAML:
        return await asyncio.to_thread(parse_body, raw, content_type)
    return parse_body(raw, content_type)


def _is_watch(request: web.BaseRequest) -> bool:
    return request.method == "GET" and "watch" in request.query_string and boolean(request.query, "watch") is True


def patch_kind(content_type: str) -> str:
    """Checked before the options: what an apply patch may say there is unknown to the others."""
    kind = content_type.partition(";")[0].strip()
    if kind == APPLY_PATCH:
        raise unsupported_media_type(APPLY_REFUSAL)
    if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include:"
            f" {JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}"
        )
    return kind


def patch_change(row: Resource, kind: str, patch: Any, policy: FieldPolicy) -> Change:
    """What a PATCH does to the current object."""
    changes: dict[str, Change] = {
        JSON_PATCH: lambda document: json_patch(document, patch),
        MERGE_PATCH: lambda document: merge_patch(document, patch),
        STRATEGIC_PATCH: lambda document: strategic_patch(document, patch, row.type_name),
    }
    apply = changes[kind]

    def change(document: Document) -> Document:
        try:
            patched = apply(document)
            refuse_deep(encode(patched))  # many shallow patches make a deep object
        except (TooDeep, RecursionError):
            raise bad_request(f"the patch makes an object of which {TooDeep()}") from None
        return typed(patched, row, policy)

    return change


def free_patch(current: Document, raw: bytes, content_type: str) -> Document:
    """A patch of a subresource's own small kind, such as Scale."""
    if content_type.startswith(JSON_PATCH):
        return json_patch(current, parse_body(raw, content_type))
    if content_type.startswith((MERGE_PATCH, STRATEGIC_PATCH)):
        return merge_patch(current, parse_body(raw, content_type))
    raise unsupported_media_type(APPLY_REFUSAL)


async def deletion_asked(request: web.BaseRequest) -> Deletion:
    """DeleteOptions from the body, or from the query where there is none."""
    body: Document | None = None
    if await request.read():
        body = checked_as(await body_of(request), DELETE_OPTIONS, "DeleteOptions")
    options = delete_options(request.query, body)
    conditions = part(body or {}, "preconditions")
    return Deletion(
        grace_seconds=options.grace_seconds,
        propagation="Orphan" if options.orphan_dependents else options.propagation,
        uid=conditions.get("uid"),
        resource_version=conditions.get("resourceVersion"),
        dry_run=options.dry_run,
    )


def answer(
    body: bytes, code: int = 200, *, content_type: str = JSON_TYPE, warnings: list[str] | None = None
) -> web.Response:
    response = web.Response(body=body, status=code, headers={"Content-Type": content_type})
    left = MOST_WARNING_TEXT
    for warning in warnings or []:
        # Names of fields are the client's text: what no header may hold is left out.
        text = "".join(letter for letter in warning[:LONGEST_WARNING] if letter.isprintable())
        if (left := left - len(text)) < 0:
            break
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def _last_answer() -> web.Response:
    """To a client that is quicker than the end of its connection: a watch that began now would delay our stopping."""
    last = refusal(Refused(503, "ServiceUnavailable", "the API server is shutting down", retry_after=1))
    last.force_close()
    return last


def refusal(refused: Refused) -> web.Response:
    response = answer(encode(refused.document()), refused.code)
    if refused.retry_after is not None:
        response.headers["Retry-After"] = str(refused.retry_after)
    if refused.code == 401:
        response.force_close()
        response.headers["WWW-Authenticate"] = 'Bearer realm="mooring"'
    return response
