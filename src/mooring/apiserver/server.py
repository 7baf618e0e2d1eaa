"""The embedded server itself: address, certificate, token, start and stop."""

from __future__ import annotations

import asyncio
import base64
import errno
import logging
import secrets
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from mooring.apiserver.bootstrap import create_initial_objects
from mooring.apiserver.connections import BoundedServer, Connections
from mooring.apiserver.controller_manager import ControllerManager
from mooring.apiserver.documents import Document, copied
from mooring.apiserver.handlers import MAX_BODY_BYTES, Handler
from mooring.apiserver.loading import LineOf, load
from mooring.apiserver.metrics_api import MetricsSource, metrics_rows
from mooring.apiserver.negotiation import decode_object
from mooring.apiserver.options import FieldValidation
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.resources import Conversion, Resource, ResourceTable, built_in_rows
from mooring.apiserver.restoring import Restored, restore
from mooring.apiserver.storage import Store
from mooring.apiserver.strategies import StrategyContext
from mooring.apiserver.strategies.autoscalers import to_v1, to_v2
from mooring.apiserver.strategies.events import to_core, to_events_v1
from mooring.base.clock import Clock, SystemClock
from mooring.base.documents import written
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import write_private
from mooring.base.log import Log

if TYPE_CHECKING:
    from mooring.base.tls import Identity

# How long stopping waits for clients that neither read their response nor send the rest of their request.
GRACE_SECONDS = 1.0
MAX_URL = 64 * 1024
KUBECONFIG_NAME = "mooring"
CONVERSIONS = {
    ("events.k8s.io", "v1", "events"): Conversion("events", to_events_v1, to_core),
    ("autoscaling", "v1", "horizontalpodautoscalers"): Conversion("horizontalpodautoscalers.autoscaling", to_v1, to_v2),
}


class LocalStore:
    """The server's objects without HTTP, for tests in the same process; defaulting, admission and validation run."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry

    def create(self, document: Document) -> Document:
        """Create an object of its `apiVersion` and `kind`; returns it as stored."""
        row = self._registry.table.by_kind(document["apiVersion"], document["kind"])
        if row is None:
            raise KeyError(f"{document['apiVersion']} {document['kind']} is not served")
        namespace = document.get("metadata", {}).get("namespace", "default") if row.namespaced else ""
        checked = decode_object(copied(document), row, FieldValidation("Strict"))
        return row.to_served(self._registry.create(row, namespace, checked).document)

    def get(self, resource: str, name: str, namespace: str = "default") -> Document | None:
        """`resource` is a plural, qualified by its group outside core: `pods`, `deployments.apps`."""
        row = self._row(resource)
        return self._registry.store.get(row.storage, namespace if row.namespaced else "", name)

    def list(self, resource: str, namespace: str | None = None) -> list[Document]:
        return self._registry.store.list(self._row(resource).storage, namespace)

    def _row(self, resource: str) -> Resource:
        rows = self._registry.table.stored_as(resource)
        if not rows:
            raise KeyError(f"{resource} is not served")
        return rows[0]


class EmbeddedApiServer:
    """A Kubernetes API server in this process, on loopback, over HTTPS. `features`: the feature gates that are on."""

    def __init__(
        self, host: str = "127.0.0.1", port: int = 0, clock: Clock | None = None, features: Collection[str] = ()
    ) -> None:
        self.host, self.port = host, port
        self.token = secrets.token_urlsafe(32)
        self._log = Log("apiserver")
        self._objects = Store()
        table = ResourceTable(built_in_rows(CONVERSIONS, features))
        context = StrategyContext(self._objects, table, clock or SystemClock(), features=frozenset(features))
        self.registry = ResourceRegistry(context)
        self.store = LocalStore(self.registry)
        create_initial_objects(self.registry)
        self.controllers = ControllerManager(self.registry, self._log)
        self.controllers.sync()
        self._handler: Handler | None = None
        self._runner: web.ServerRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @cached_property
    def _identity(self) -> Identity:
        # Importing the certificate code takes as long as the rest of this package; a store without HTTP needs none.
        from mooring.base.tls import make_identity

        return make_identity(sorted({self.host, "127.0.0.1", "localhost", "kubernetes"}), "mooring embedded cluster")

    @property
    def ca_pem(self) -> str:
        return self._identity.ca_pem

    @property
    def url(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{shown}:{self.port}"

    def kubeconfig(self) -> Document:
        return kubeconfig(self.url, self.token, self.ca_pem)

    def kubeconfig_text(self) -> str:
        return written(self.kubeconfig())

    def write_kubeconfig(self, path: str | Path) -> None:
        """Write a kubeconfig that only its owner may read."""
        write_private(path, self.kubeconfig_text())

    def load(self, documents: Iterable[Document], line_of: LineOf = lambda _: None) -> list[Problem]:
        """Create the objects of a file, before clients connect; returns the errors of all of them."""
        problems = load(self.registry, documents, line_of)
        self.controllers.sync()
        return problems

    def restore(self, documents: Iterable[Document], line_of: LineOf = lambda _: None) -> Restored:
        """Restore the objects of another API server, as `kubectl get -o yaml` prints them; before clients connect."""
        restored = restore(self.registry, documents, line_of)
        self.controllers.retain_restored()
        return restored

    def serve_metrics(self, source: MetricsSource) -> None:
        """Serve metrics.k8s.io from this source, as metrics-server does in other clusters."""
        for row in metrics_rows(source):
            self.registry.table.add(row)

    async def start(self) -> None:
        connections = Connections()
        handler = Handler(self.registry, self.token, connections, self._log)
        server = BoundedServer(
            handler,
            connections,
            request_factory=_request_factory(),
            handler_cancellation=True,
            access_log=None,
            logger=_quiet_logger(),
            max_line_size=MAX_URL,
        )
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=GRACE_SECONDS)
        await runner.setup()
        site = web.TCPSite(runner, self.host, self.port, ssl_context=self._identity.ssl_context(), backlog=512)
        try:
            await site.start()
        except OSError as failure:
            await runner.cleanup()
            raise _cannot_listen(self.host, self.port, failure) from failure
        self._runner, self._handler = runner, handler
        self._tasks = [asyncio.create_task(self.controllers.run()), asyncio.create_task(handler.enforce_timeout())]
        self.port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse further requests, end open watches, then close the connections. Stopping twice is harmless."""
        runner, self._runner = self._runner, None
        handler, self._handler = self._handler, None
        if runner is None or handler is None:
            return
        for task in self._tasks:
            task.cancel()
        handler.shut_down()
        self._objects.end_watches()
        await runner.cleanup()


def _quiet_logger() -> logging.Logger:
    """For aiohttp, which logs a traceback for every malformed request. The handler logs faults of our own."""
    logger = logging.getLogger("mooring.apiserver.http")
    logger.disabled = True
    return logger


def _request_factory() -> Callable[..., web.BaseRequest]:
    """Requests with kube-apiserver's limit on bodies."""
    loop = asyncio.get_running_loop()

    def request(message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)

    return request


def _cannot_listen(host: str, port: int, failure: OSError) -> OperatorMistake:
    if failure.errno == errno.EADDRINUSE:
        return OperatorMistake(
            f"{host}:{port} is in use. Stop what listens there, or choose another port (0 takes any free one)."
        )
    return OperatorMistake(f"Cannot listen on {host}:{port}: {failure.strerror or failure}.")


def kubeconfig(url: str, token: str, ca_pem: str) -> Document:
    """The kubeconfig that points clients at an embedded server."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": KUBECONFIG_NAME,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(ca_pem.encode()).decode(),
                },
            }
        ],
        "users": [{"name": KUBECONFIG_NAME, "user": {"token": token}}],
        "contexts": [
            {
                "name": KUBECONFIG_NAME,
                "context": {"cluster": KUBECONFIG_NAME, "user": KUBECONFIG_NAME, "namespace": "default"},
            }
        ],
        "current-context": KUBECONFIG_NAME,
    }
