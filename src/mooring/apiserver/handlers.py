"""HTTP: authentication, routing to a verb of the registry, and responses. Rules are in the registry and strategies."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from mooring.apiserver import discovery
from mooring.apiserver.connections import Connections
from mooring.apiserver.documents import Document, encode
from mooring.apiserver.json_patch import json_patch
from mooring.apiserver.lists import list_body, list_page
from mooring.apiserver.negotiation import decode_as, decode_object, parse_body, shape_of
from mooring.apiserver.openapi import V2_ACCEPT, V2_EMPTY, V2_TYPE, OpenApi
from mooring.apiserver.options import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    boolean,
    delete_options,
    list_options,
    write_options,
)
from mooring.apiserver.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    merge_patch,
    strategic_patch,
)
from mooring.apiserver.registry import Change, ResourceRegistry
from mooring.apiserver.resources import Resource
from mooring.apiserver.routes import Route, find_route
from mooring.apiserver.selection_predicate import SelectionPredicate, parse_predicate
from mooring.apiserver.status import (
    StatusError,
    bad_request,
    method_not_allowed,
    no_such_path,
    success,
    too_large,
    too_many_requests,
    unauthorized,
    unsupported_media_type,
)
from mooring.apiserver.storage import StoredObject
from mooring.apiserver.streaming import streamed
from mooring.apiserver.subresources import SubresourceRequest, subresource_handlers
from mooring.apiserver.tables import Tables
from mooring.apiserver.watch_server import WatchServer
from mooring.base.log import Log
from mooring.base.nesting import TooDeep, refuse_deep

JSON_TYPE = "application/json"
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
VERSION_PATHS = ("/version", "/version/")
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_IN_FLIGHT = 600
"""Requests in flight, without watches: kube-apiserver's default."""
REQUEST_SECONDS = 60.0
DELETION_BATCH = 100
LONG_YAML = 64 * 1024
MAX_WARNING, MAX_WARNING_TEXT = 256, 4096
APPLY_REFUSAL = (
    "server-side apply is not supported by Mooring's embedded API server;"
    " use kubectl apply without --server-side, or a patch"
)


class Handler:
    """Serves every request of one run of the server, from its start to `shut_down`."""

    def __init__(self, registry: ResourceRegistry, token: str, connections: Connections, log: Log) -> None:
        self._registry = registry
        self._connections = connections
        self._table = registry.table
        self._expected = f"Bearer {token}".encode()
        self._tables = Tables(registry.context.clock)
        self._subresource_handlers = subresource_handlers(token)
        self._openapi = OpenApi(registry.table)
        self._log = log
        self._in_flight: dict[int, tuple[web.BaseRequest, float]] = {}
        self._is_shutting_down = False

    def shut_down(self) -> None:
        """Refuse all further requests with 503."""
        self._is_shutting_down = True

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._is_shutting_down:
            return _shutting_down_response()
        if _is_watch(request):
            return await self._respond(request)
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            return error_response(too_many_requests())
        self._in_flight[id(request)] = request, time.monotonic()
        try:
            response = await self._respond(request)
            # Written here, so that a client that does not read is subject to the time limit, too.
            await response.prepare(request)
            await response.write_eof()
        finally:
            del self._in_flight[id(request)]
        return response

    async def enforce_timeout(self) -> None:
        """Close connections whose request is not sent, or whose response is not read, in time; until cancelled."""
        while True:
            await asyncio.sleep(REQUEST_SECONDS / 6)
            latest = time.monotonic() - REQUEST_SECONDS
            for request, since in list(self._in_flight.values()):
                if since < latest and request.transport is not None:
                    request.transport.abort()

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._dispatch(request)
        except StatusError as error:
            return error_response(error)
        except web.HTTPRequestEntityTooLarge:
            return error_response(too_large(f"limit is {MAX_BODY_BYTES}"))
        except RecursionError:
            return error_response(bad_request("the object provided is nested too deeply"))
        except ConnectionError:
            raise
        except Exception as fault:
            self._log.error("Request failed", method=request.method, path=request.path, err=repr(fault))
            if debug := self._log.v(4):
                import traceback

                debug.info(traceback.format_exc())
            return error_response(StatusError(500, "InternalError", f"Internal error occurred: {fault}"))

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        parts = path.strip("/").split("/")
        if path in HEALTH_PATHS:
            return web.Response(text="ok")
        if path in VERSION_PATHS:
            if request.method not in ("GET", "HEAD"):
                raise method_not_allowed()
            return json_response(encode(discovery.version()))
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._expected):
            raise unauthorized()
        self._connections.authenticated(request.protocol)
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
                return json_response(body, content_type=discovery.AGGREGATED_TYPE)
            found = discovery.core_versions(_local_address(request)) if is_core else discovery.groups(self._table)
        elif parts[0] == "api" and len(parts) == 2:
            found = discovery.resources(self._table, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.group(self._table, parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.resources(self._table, parts[1], parts[2])
        elif path == "/openapi/v2" and V2_ACCEPT in accept:
            return json_response(V2_EMPTY, content_type=V2_TYPE)
        elif path == "/openapi/v3":
            return json_response(self._openapi.root())
        elif path.startswith("/openapi/v3/"):
            described = self._openapi.group_version(path.removeprefix("/openapi/v3/"))
            if described is None:
                raise no_such_path()
            return json_response(described)
        elif path == "/":
            found = {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]}
        if found is None:
            raise no_such_path()
        return json_response(encode(found))

    async def _resource(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        method = request.method
        if route.subresource:
            return await self._subresource(request, route)
        if method in ("GET", "HEAD"):
            return await self._read(request, route)
        if route.row.computed is not None:
            raise method_not_allowed()
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
        if is_watch and row.computed is not None:
            raise method_not_allowed()
        shape = shape_of(request.headers.get("Accept", ""))
        include = query.get("includeObject", "")
        if route.name and not is_watch:
            stored = self._registry.stored(row, route.namespace, route.name)
            if shape == "object":
                return json_response(stored.converted(row.to_served)[1])
            return json_response(self._tables.one(row, stored, shape, include))
        selection = self._predicate(row, route, query)
        if is_watch:
            show = None if shape == "object" else self._tables.watch_encoder(row, shape, include)
            watch = WatchServer(self._registry.store, self._registry.context.clock, row, selection, options, show)
            return await watch.serve(request)
        page = list_page(self._registry.store, row, selection, options)
        parts = list_body(row, page) if shape == "object" else self._tables.many(row, page, shape, include)
        return await streamed(request, parts, JSON_TYPE)

    def _predicate(self, row: Resource, route: Route, query: Mapping[str, str]) -> SelectionPredicate:
        fields = self._registry.strategy_of(row).fields
        return parse_predicate(route.namespace, query, fields, route.name)

    # Writing

    async def _create(self, request: web.BaseRequest, route: Route) -> web.Response:
        row, query = route.row, request.query
        if "create" not in row.verbs:
            raise method_not_allowed()
        options = write_options(query)
        body = await body_of(request)
        call = SubresourceRequest(self._registry, route, query, body)
        if (special := self._subresource_handlers.get((row.storage, ""))) is not None:
            return json_response(encode(special.post(call)), 201)
        document = decode_object(body, row, options.policy)
        namespace = route.namespace
        if row.namespaced and not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        stored = self._registry.create(row, namespace, document, dry_run=options.dry_run)
        if warning_on_create := self._registry.strategy_of(row).warning_on_create:
            options.policy.warnings.append(warning_on_create)
        return self._written(request, row, stored, options.policy, 201)

    async def _replace(self, request: web.BaseRequest, route: Route, *, status: bool = False) -> web.Response:
        row, query = route.row, request.query
        options = write_options(query, "UpdateOptions")
        body = await body_of(request)
        document = decode_object(body, row, options.policy)
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
        self, request: web.BaseRequest, row: Resource, stored: StoredObject, policy: FieldValidation, code: int
    ) -> web.Response:
        shape = shape_of(request.headers.get("Accept", ""))
        if shape == "object":
            body = stored.converted(row.to_served)[1]
        else:
            body = self._tables.one(row, stored, shape, request.query.get("includeObject", ""))
        return json_response(body, code, warnings=policy.warnings)

    async def _delete(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        row, query = route.row, request.query
        if ("delete" if route.name else "deletecollection") not in row.verbs:
            raise method_not_allowed()
        options = await read_delete_options(request)
        if not route.name:
            parts = await self._delete_collection(route, query, options)
            return await streamed(request, parts, JSON_TYPE)
        document, is_gone = self._registry.delete(row, route.namespace, route.name, options)
        if is_gone and row.storage != "pods":
            about = {"name": route.name, "kind": row.plural, "uid": document["metadata"]["uid"]}
            return json_response(encode(success(about | ({"group": row.group} if row.group else {}))))
        return json_response(encode(row.to_served(document)))

    async def _delete_collection(
        self, route: Route, query: Mapping[str, str], options: DeleteOptions
    ) -> Iterator[bytes]:
        row, listing = route.row, list_options(query)
        page_options = ListOptions(limit=listing.limit, token=listing.token)
        page = list_page(self._registry.store, row, self._predicate(row, route, query), page_options)
        for number, stored in enumerate(page.found):
            if number % DELETION_BATCH == DELETION_BATCH - 1:
                await asyncio.sleep(0)
            metadata = stored.document["metadata"]
            try:
                self._registry.delete(row, metadata.get("namespace", ""), metadata["name"], options)
            except StatusError as error:
                # Another request may have deleted it in between.
                if error.code != 404:
                    raise
        return list_body(row, page)

    # Subresources

    async def _subresource(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        row, sub, method = route.row, route.subresource, request.method
        if sub == "status":
            if method in ("GET", "HEAD"):
                stored = self._registry.stored(row, route.namespace, route.name)
                return json_response(stored.converted(row.to_served)[1])
            if method == "PUT":
                return await self._replace(request, route, status=True)
            if method == "PATCH":
                return await self._patch(request, route, status=True)
            raise method_not_allowed()
        special = self._subresource_handlers.get((row.storage, sub)) or self._subresource_handlers.get(("*", sub))
        if special is None:
            raise no_such_path()
        raw = await request.read()
        content_type = request.headers.get("Content-Type", "")
        body = await body_of(request) if raw and method != "PATCH" else None
        call = SubresourceRequest(self._registry, route, request.query, body)
        if method in ("GET", "HEAD"):
            return json_response(encode(special.get(call)))
        if method == "POST":
            return json_response(encode(special.post(call)), 201)
        if method == "PUT":
            return json_response(encode(special.put(call)))
        if method == "PATCH":
            current = special.get(call)
            call.body = free_patch(current, raw, content_type)
            return json_response(encode(special.put(call)))
        raise method_not_allowed()


async def body_of(request: web.BaseRequest) -> Any:
    """The body, decoded. Long YAML takes seconds, so it is decoded in a thread while other requests are served."""
    raw, content_type = await request.read(), request.headers.get("Content-Type", "")
    if "yaml" in content_type and len(raw) > LONG_YAML:
        return await asyncio.to_thread(parse_body, raw, content_type)
    return parse_body(raw, content_type)


def _is_watch(request: web.BaseRequest) -> bool:
    return request.method == "GET" and "watch" in request.query_string and boolean(request.query, "watch") is True


def patch_kind(content_type: str) -> str:
    """The patch's media type. It is checked before the query: an apply patch has options that the others refuse."""
    kind = content_type.partition(";")[0].strip()
    if kind == APPLY_PATCH:
        raise unsupported_media_type(APPLY_REFUSAL)
    if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include:"
            f" {JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}"
        )
    return kind


def patch_change(row: Resource, kind: str, patch: Any, policy: FieldValidation) -> Change:
    """The change of the current object that a PATCH makes."""
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
        return decode_object(patched, row, policy)

    return change


def free_patch(current: Document, raw: bytes, content_type: str) -> Document:
    """A patch of a subresource with a kind of its own, such as Scale."""
    if content_type.startswith(JSON_PATCH):
        return json_patch(current, parse_body(raw, content_type))
    if content_type.startswith((MERGE_PATCH, STRATEGIC_PATCH)):
        return merge_patch(current, parse_body(raw, content_type))
    raise unsupported_media_type(APPLY_REFUSAL)


async def read_delete_options(request: web.BaseRequest) -> DeleteOptions:
    """DeleteOptions from the body, or from the query where there is none."""
    body: Document | None = None
    if await request.read():
        body = decode_as(await body_of(request), DELETE_OPTIONS, "DeleteOptions")
    return delete_options(request.query, body)


def json_response(
    body: bytes, code: int = 200, *, content_type: str = JSON_TYPE, warnings: list[str] | None = None
) -> web.Response:
    response = web.Response(body=body, status=code, headers={"Content-Type": content_type})
    left = MAX_WARNING_TEXT
    for warning in warnings or []:
        # Warnings contain field names that clients chose: characters that are not allowed in headers are dropped.
        text = "".join(letter for letter in warning[:MAX_WARNING] if letter.isprintable())
        if (left := left - len(text)) < 0:
            break
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def _shutting_down_response() -> web.Response:
    """For requests over connections that are still open: a watch that began now would delay the shutdown."""
    response = error_response(StatusError(503, "ServiceUnavailable", "the API server is shutting down", retry_after=1))
    response.force_close()
    return response


def error_response(error: StatusError) -> web.Response:
    response = json_response(encode(error.document()), error.code)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.code == 401:
        response.force_close()
        response.headers["WWW-Authenticate"] = 'Bearer realm="mooring"'
    return response


def _local_address(request: web.BaseRequest) -> str:
    """The address and port that the client connected to."""
    host, port, *_ = request.get_extra_info("sockname")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
