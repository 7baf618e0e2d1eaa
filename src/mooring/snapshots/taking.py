"""Takes a snapshot: lists every kind page by page, prunes each object, and writes it to a spool.

No more than a page of objects is in memory. Nothing is requested but lists of the kinds in `mooring.snapshots.kinds`,
lists of custom kinds of plugins, their definitions, the server's version, and what the account may list: a list that
would be refused is not requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from mooring.base.errors import ApiError, Fault
from mooring.base.nesting import Decoder
from mooring.client import ApiClient
from mooring.client.api import PAGE
from mooring.client.list_pages import ListPages
from mooring.client.own_rules import read_own_rules
from mooring.objects.meta import Kind
from mooring.snapshots.file_format import Header, LeftOut, Spool
from mooring.snapshots.kinds import DEFINITION, SAVED, SavedKind, custom
from mooring.snapshots.pruning import Document, Pruning

FORBIDDEN, NOT_FOUND, GONE = 403, 404, 410
NEVER = ("secrets", "configmaps")
"""Not even where a plugin reads them."""
REASONS = {FORBIDDEN: "forbidden", NOT_FOUND: "not served"}

Progress = Callable[[str, int], None]
"""Called with a kind and how many of its objects have been listed, after each page."""

_decoder: Decoder[Document] = Decoder(dict[str, Any])


async def take_snapshot(
    client: ApiClient,
    spool: Spool,
    *,
    custom_kinds: Mapping[Kind, Document] | None = None,
    keep_annotations: Iterable[str] = (),
    on_page: Progress = lambda _kind, _count: None,
) -> Header:
    """List the cluster into the spool. Nodes and pods are required; other kinds that fail are named in the header.

    `custom_kinds`: the kinds of plugins with the definition that is written where the cluster's cannot be read.
    """
    version = await client.server_version()
    is_allowed = await read_own_rules(client)
    annotations = sorted(keep_annotations)
    pruning = Pruning(annotations)
    left_out: list[LeftOut] = []
    more = {kind: definition for kind, definition in (custom_kinds or {}).items() if kind.name not in NEVER}
    left_out += [LeftOut(kind.name, "never saved") for kind in custom_kinds or {} if kind.name in NEVER]
    if more:
        await _definitions(client, spool, pruning, more, may_get=is_allowed(DEFINITION.kind, "get"))
    for saved in (*SAVED, *map(custom, more)):
        if not (saved.is_required or is_allowed(saved.kind, "list")):
            left_out.append(LeftOut(saved.kind.name, REASONS[FORBIDDEN]))
            continue
        try:
            await _list(client, spool, pruning, saved, on_page)
        except ApiError as error:
            if error.code not in REASONS:
                raise Fault(f"{saved.kind.name} cannot be listed: {error}") from error
            if saved.is_required:
                raise Fault(f"a snapshot needs {saved.kind.name}, which cannot be listed: {error}") from error
            spool.again()
            if not (saved.is_gated and error.code == NOT_FOUND):
                left_out.append(LeftOut(saved.kind.name, REASONS[error.code]))
    spool.finish()
    return Header(
        taken_at=datetime.fromtimestamp(client.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        server_version=str(version.get("gitVersion", "")),
        counts=dict(spool.counts),
        left_out=left_out,
        annotations=annotations,
    )


async def _list(client: ApiClient, spool: Spool, pruning: Pruning, saved: SavedKind, on_page: Progress) -> None:
    kind = saved.kind
    spool.begin(kind.name)
    token, limit, pages = "", PAGE, ListPages(kind)
    while True:
        try:
            page = await client.list_page(kind, None, {}, limit=limit, token=token)
        except ApiError as error:
            if error.code != GONE or not token:
                raise
            # The list has expired while it was read. As other clients do: once more, at once.
            spool.again()
            token, limit, pages = "", 0, ListPages(kind)
            continue
        for item in page.items or ():
            document = {"apiVersion": kind.api_version, "kind": kind.kind} | _decoder.decode(item)
            spool.add(pruning.prune(document, saved.fields))
        on_page(kind.name, spool.counts[kind.name])
        token = pages.follow(len(page.items or ()), page.metadata.next)
        if not token:
            return


async def _definitions(
    client: ApiClient, spool: Spool, pruning: Pruning, custom_kinds: Mapping[Kind, Document], *, may_get: bool
) -> None:
    spool.begin(DEFINITION.kind.name)
    for kind, definition in custom_kinds.items():
        document = definition
        try:
            if may_get:
                document = await client.get(DEFINITION.kind, kind.name)
        except ApiError as error:
            if error.code == NOT_FOUND:
                continue  # then its objects are not served either
            if error.code != FORBIDDEN:
                raise
        spool.add(pruning.prune(document, DEFINITION.fields))
