"""`POST /what-if`: one simulation at a time, a few that wait, and what the user may not see left out."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web

from mooring.base.errors import ApiError, MooringError
from mooring.framework import Pod
from mooring.objects.core import Namespace
from mooring.objects.meta import Kind
from mooring.simulator.scenario import Documents, KindKey
from mooring.web.access import Rights
from mooring.web.errors import RequestError, too_many
from mooring.web.mirror import Mirror
from mooring.web.responses import json_response
from mooring.web.what_if import decide_again, simulated
from mooring.web.what_if_request import WhatIfRequest, check_nodes, read_request

MOST_BODY = 1024 * 1024
MOST_WAITING = 4
ADMISSION_SECONDS = 30.0
"""How long lists of classes and namespaces are kept."""
ADMISSION = (
    Namespace.KIND,
    Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False),
    Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False),
)
"""What decides how a new pod is defaulted."""

Document = dict[str, Any]


async def read_body(request: web.BaseRequest) -> bytes:
    """The body of a request, bounded."""
    if (request.content_length or 0) > MOST_BODY:
        raise RequestError(413, f"a request may have {MOST_BODY} bytes.")
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MOST_BODY:
            raise RequestError(413, f"a request may have {MOST_BODY} bytes.")
    return bytes(body)


class WhatIfCalls:
    """Carries out what-ifs on the mirror, or on a copy of it."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._threads = ThreadPoolExecutor(1, "what-if")
        self._count = 0
        """How many run or wait."""
        self._admission: tuple[float, dict[KindKey, list[Document]]] | None = None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def serve(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        rights.check_nodes()
        wanted = read_request(await read_body(request))
        return await json_response(request, visible(await self.compute(wanted, rights), rights))

    async def compute(self, wanted: WhatIfRequest, rights: Rights) -> Document:
        """Raises `RequestError` or `OperatorMistake`."""
        recomputation = self._mirror.recomputation
        check_nodes(wanted, {view.name: view for view in recomputation.state.nodes})
        pod = self._pod(wanted.pod, rights) if wanted.pod is not None else None
        if pod is not None and wanted.is_of_one_pod:
            return decide_again(recomputation, pod, wanted)
        if self._count > MOST_WAITING:
            raise too_many("other what-ifs are computed; please try again in a few seconds.", seconds=5)
        admission = await self._classes()
        self._count += 1
        running = asyncio.get_running_loop().run_in_executor(
            self._threads,
            simulated,
            recomputation.cluster,
            wanted,
            self._mirror.configuration,
            self._mirror.registry,
            recomputation.gates,
            admission,
            recomputation.outside_data,
            rights.may_see,
        )
        # Counted until it ends, also where its client has gone.
        running.add_done_callback(self._ended)
        try:
            return await asyncio.shield(running)
        except MemoryError as error:
            raise RequestError(413, "it takes more memory than this page may use; try less at once.") from error

    def _ended(self, running: asyncio.Future[Document]) -> None:
        self._count -= 1
        if not running.cancelled():
            running.exception()  # its client may have gone

    def _pod(self, key: str, rights: Rights) -> Pod:
        namespace, _, name = key.rpartition("/")
        namespace = namespace or "default"
        rights.check_namespace(namespace)
        pod = self._mirror.pods.get(namespace, name)
        if pod is None:
            raise RequestError(404, f'there is no pod "{name}" in namespace "{namespace}".', field="pod")
        return pod

    async def _classes(self) -> Documents:
        """Of a live cluster: by lists, as the mirror keeps no documents. A file's cluster has them itself."""
        client = self._mirror.client
        if client is None:
            return {}
        if self._admission is not None and time.monotonic() < self._admission[0] + ADMISSION_SECONDS:
            return self._admission[1]
        found: dict[KindKey, list[Document]] = {}
        for kind in ADMISSION:
            try:
                listed = await client.list(kind)
            except ApiError:
                continue  # not served, or not allowed: pods that name one are refused
            except MooringError as error:
                raise RequestError(503, f"the API server does not respond: {error}") from error
            found[kind.api_version, kind.kind] = [
                {"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in listed
            ]
        self._admission = time.monotonic(), found
        return found


def visible(found: Document, rights: Rights) -> Document:
    """Without pods of namespaces that the user may not see."""
    if rights.all_namespaces:
        return found

    def may_see(key: str) -> bool:
        return rights.may_see(key.partition("/")[0])

    shown = dict(found)
    shown["placements"] = [
        each
        | {
            "preempts": [key for key in each["preempts"] if may_see(key)],
            "hiddenVictims": sum(1 for key in each["preempts"] if not may_see(key)),
        }
        for each in found["placements"]
        if may_see(each["pod"])
    ]
    shown["scores"] = {key: scores for key, scores in found["scores"].items() if may_see(key)}
    shown["moved"] = [each for each in found["moved"] if may_see(each["pod"])]
    for each in shown["moved"]:
        if each.get("preemptedBy") and not may_see(each["preemptedBy"]):
            each["preemptedBy"] = None
    if "compare" in found:
        shown["compare"] = visible(found["compare"], rights)
    return shown
