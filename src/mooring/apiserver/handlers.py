"""HTTP: which verb a request means, and how its answer is written. Rules live in the registry and strategies."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from aiohttp import web

from mooring.apiserver import discovery
from mooring.apiserver.documents import Document, encode
from mooring.apiserver.lists import list_body, list_page
from mooring.apiserver.negotiation import (
    FieldPolicy,
    checked_as,
    field_policy,
    is_dry_run,
    parse_body,
    shape_of,
    typed,
    whole_number,
)
from mooring.apiserver.openapi import V2_ASKED, V2_EMPTY, V2_TYPE, OpenApi
from mooring.apiserver.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    json_patch,
    merge_patch,
    strategic_patch,
)
from mooring.apiserver.registry import Change, Deletion, Registry
from mooring.apiserver.resources import Resource
from mooring.apiserver.routes import Route, find_route
from mooring.apiserver.selection import Selection, parse_selection
from mooring.apiserver.status import (
    Refused,
    bad_request,
    method_not_allowed,
    no_such_path,
    success,
    too_large,
    unauthorized,
    unsupported_media_type,
)
from mooring.apiserver.storage import Stored
from mooring.apiserver.subresources import Call, special_handlers
from mooring.apiserver.tables import Tables
from mooring.apiserver.watching import WatchAnswer
from mooring.base.log import Log
from mooring.base.nesting import TooDeep, refuse_deep

JSON_TYPE = "application/json"
OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
LARGEST_BODY = 3 * 1024 * 1024
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
        self.address = ""
        self.is_stopping = False

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.is_stopping:
            return _last_answer()
        try:
            return await self._answer(request)
        except Refused as refused:
            return refusal(refused)
        except web.HTTPRequestEntityTooLarge:
            return refusal(too_large(LARGEST_BODY))
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
        if path.startswith(OPEN_PATHS):
            return self._open(path, parts)
        if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), self._expected):
            raise unauthorized()
        route = find_route(self._table, parts) if parts[0] in ("api", "apis") else None
        if route is None:
            return self._discovery(request, path, parts)
        return await self._resource(request, route)

    def _open(self, path: str, parts: list[str]) -> web.Response:
        if path == "/version":
            return answer(encode(discovery.version()))
        return web.Response(text="ok")

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
        is_watch = query.get("watch") in ("true", "1")
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
            watch = WatchAnswer(self._registry.store, self._registry.world.clock, row, selection, query, show)
            return await watch.serve(request)
        page = list_page(self._registry.store, row, selection, query)
        if shape == "object":
            return answer(list_body(row, page))
        return answer(self._tables.many(row, page, shape, include))

    def _selection(self, row: Resource, route: Route, query: Mapping[str, str]) -> Selection:
        fields = self._registry.strategy_of(row).fields
        return parse_selection(route.namespace, query, fields, route.name)

    # Writing

    async def _create(self, request: web.BaseRequest, route: Route) -> web.Response:
        row, query = route.row, request.query
        if "create" not in row.verbs:
            raise method_not_allowed()
        policy = field_policy(query)
        body = parse_body(await request.read(), request.headers.get("Content-Type", ""))
        call = Call(self._registry, route, query, body)
        if (special := self._special.get((row.storage, ""))) is not None:
            return answer(encode(special.post(call)), 201)
        document = typed(body, row, policy)
        namespace = route.namespace
        if row.namespaced and not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        stored = self._registry.create(row, namespace, document, dry_run=is_dry_run(query))
        return self._written(request, row, stored, policy, 201)

    async def _replace(self, request: web.BaseRequest, route: Route, *, status: bool = False) -> web.Response:
        row, query = route.row, request.query
        policy = field_policy(query)
        body = parse_body(await request.read(), request.headers.get("Content-Type", ""))
        document = typed(body, row, policy)
        stored, is_new = self._registry.update(
            row, route.namespace, route.name, lambda _: document, status=status, dry_run=is_dry_run(query)
        )
        return self._written(request, row, stored, policy, 201 if is_new else 200)

    async def _patch(self, request: web.BaseRequest, route: Route, *, status: bool = False) -> web.Response:
        row, query = route.row, request.query
        policy = field_policy(query)
        change = patch_change(row, await request.read(), request.headers.get("Content-Type", ""), policy)
        # Kinds that a PUT may create (leases, events) are not created from a patch: there is nothing to patch.
        self._registry.stored(row, route.namespace, route.name)
        stored, _ = self._registry.update(
            row, route.namespace, route.name, change, status=status, dry_run=is_dry_run(query)
        )
        return self._written(request, row, stored, policy, 200)

    def _written(
        self, request: web.BaseRequest, row: Resource, stored: Stored, policy: FieldPolicy, code: int
    ) -> web.Response:
        shape = shape_of(request.headers.get("Accept", ""))
        if shape == "object":
            body = stored.seen(row.to_view)[1]
        else:
            body = self._tables.one(row, stored, shape, request.query.get("includeObject", ""))
        return answer(body, code, warnings=policy.warnings)

    async def _delete(self, request: web.BaseRequest, route: Route) -> web.Response:
        row, query = route.row, request.query
        if ("delete" if route.name else "deletecollection") not in row.verbs:
            raise method_not_allowed()
        asked = await deletion_asked(request)
        if not route.name:
            return self._delete_collection(route, query, asked)
        document, is_gone = self._registry.delete(row, route.namespace, route.name, asked)
        if is_gone and row.storage != "pods":
            about = {"name": route.name, "kind": row.plural, "uid": document["metadata"]["uid"]}
            return answer(encode(success(about | ({"group": row.group} if row.group else {}))))
        return answer(encode(row.to_view(document)))

    def _delete_collection(self, route: Route, query: Mapping[str, str], asked: Deletion) -> web.Response:
        row = route.row
        page = list_page(self._registry.store, row, self._selection(row, route, query), {})
        for stored in page.found:
            metadata = stored.document["metadata"]
            self._registry.delete(row, metadata.get("namespace", ""), metadata["name"], asked)
        return answer(list_body(row, page))

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
        body = parse_body(raw, content_type) if raw and method != "PATCH" else None
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


def patch_change(row: Resource, raw: bytes, content_type: str, policy: FieldPolicy) -> Change:
    """What a PATCH does to the current object."""
    kind = content_type.partition(";")[0].strip()
    if kind == APPLY_PATCH:
        raise unsupported_media_type(APPLY_REFUSAL)
    patch = parse_body(raw, content_type)
    apply = {
        JSON_PATCH: lambda document: json_patch(document, patch),
        MERGE_PATCH: lambda document: merge_patch(document, patch),
        STRATEGIC_PATCH: lambda document: strategic_patch(document, patch, row.type_name),
    }.get(kind)
    if apply is None:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include:"
            f" {JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}"
        )

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
    patch = parse_body(raw, content_type)
    if content_type.startswith(JSON_PATCH):
        return json_patch(current, patch)
    if content_type.startswith((MERGE_PATCH, STRATEGIC_PATCH)):
        return merge_patch(current, patch)
    raise unsupported_media_type(APPLY_REFUSAL)


async def deletion_asked(request: web.BaseRequest) -> Deletion:
    """DeleteOptions from the body, and what the query says instead."""
    raw, query = await request.read(), request.query
    options: Document = {}
    if raw:
        options = checked_as(parse_body(raw, request.headers.get("Content-Type", "")), DELETE_OPTIONS, "DeleteOptions")
    grace = options.get("gracePeriodSeconds")
    if grace is None:
        grace = whole_number(query, "gracePeriodSeconds")
    propagation = options.get("propagationPolicy") or query.get("propagationPolicy")
    orphan = options.get("orphanDependents")
    if propagation is None and (orphan or query.get("orphanDependents") == "true"):
        propagation = "Orphan"
    conditions = options.get("preconditions") or {}
    return Deletion(
        grace_seconds=grace,
        propagation=propagation,
        uid=conditions.get("uid"),
        resource_version=conditions.get("resourceVersion"),
        dry_run=is_dry_run(query) or "All" in (options.get("dryRun") or []),
    )


def answer(
    body: bytes, code: int = 200, *, content_type: str = JSON_TYPE, warnings: list[str] | None = None
) -> web.Response:
    response = web.Response(body=body, status=code, headers={"Content-Type": content_type})
    for warning in warnings or []:
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
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
        response.headers["WWW-Authenticate"] = 'Bearer realm="mooring"'
    return response
