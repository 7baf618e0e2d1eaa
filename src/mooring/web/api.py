"""The paths of the API: each reads the mirror for what its user may see, and returns a document."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from mooring.base.clock import timestamp
from mooring.base.errors import Fault, OperatorMistake
from mooring.framework import Pod, Point
from mooring.scheduler.introspection.explain_client import query
from mooring.web.access import Rights
from mooring.web.actions import Actions
from mooring.web.errors import RequestError, not_found
from mooring.web.mirror import Mirror
from mooring.web.node_columns import node_columns, resources_of
from mooring.web.node_page import node_page
from mooring.web.pending_causes import PendingCauses
from mooring.web.pod_page import SHOWN_NODES, pod_page
from mooring.web.pod_search import search_pods
from mooring.web.queue_page import queue_page
from mooring.web.recordings import Recordings
from mooring.web.redaction import redacted
from mooring.web.responses import bytes_response, encoded, json_response
from mooring.web.stream import Streams
from mooring.web.what_if_calls import WhatIfCalls
from mooring.why import why_not
from mooring.why.pod_document import Recorded, recorded, served_by

ROOT = "/api/v1"
FRESH_SECONDS = 0.5
"""Columns of nodes are encoded so often at most, however many pages are open."""

QUEUED_SECONDS = 5.0
"""Schedulers are queried for attempts so often at most: it takes some of their time."""
OF_A_CLUSTER = ("cluster", "nodes", "queue", "pods", "what-if")
"""What is served of clusters of the past, too."""

Document = dict[str, Any]
Handler = Callable[[web.BaseRequest, Rights], Awaitable[web.StreamResponse]]


class Api:
    """What is served below `/api/v1`."""

    def __init__(
        self,
        mirror: Mirror,
        *,
        allow_actions: bool = False,
        recording: str | None = None,
        is_configured: bool = False,
    ) -> None:
        """`recording` is a file; its clusters are decided as recorded, unless the operator has configured it."""
        self.mirror = mirror
        self.recordings: Recordings[Api] | None = None
        if recording is not None:
            self.recordings = Recordings(
                recording,
                mirror.registry,
                mirror.recomputation.gates,
                mirror.configuration,
                Api,
                is_configured=is_configured,
            )
        self.actions = Actions(mirror.connection, are_allowed=allow_actions)
        self.causes = PendingCauses(mirror)
        self.streams = Streams(mirror, self.counts, self.resources)
        self.what_ifs = WhatIfCalls(mirror)
        mirror.on_configured = self._configured
        self._queued_at = float("-inf")
        self._queued_pods: Mapping[str, Document] = {}
        self._columns: tuple[int, float, bytes] | None = None
        self._resources: tuple[int, list[str]] | None = None

    def _configured(self) -> None:
        self.causes.forget()
        self.streams.configured()

    def close(self) -> None:
        """End streams, and what is computed for clients."""
        self.streams.close()
        self.what_ifs.close()
        if self.recordings is not None:
            self.recordings.close()

    async def respond(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        """To a request below the root. With `at=N`, by the cluster when recorded decision N was made."""
        path = request.rel_url.raw_path
        handler = self.handler(request.method, path)
        if "at" in request.query and path.removeprefix(ROOT).split("/")[1] in OF_A_CLUSTER:
            past = await self._recorded_clusters().view_at(request.query["at"])
            handler = past.handler(request.method, path)
        return await handler(request, rights)

    def _recorded_clusters(self) -> Recordings[Api]:
        if self.recordings is None:
            raise RequestError(404, "there is no recording; `mooring web --recording FILE` shows one.")
        return self.recordings

    def handler(self, method: str, path: str) -> Handler:
        """Of a path. Raises `RequestError` where there is none."""
        parts = [unquote(each) for each in path.removeprefix(ROOT).strip("/").split("/")]
        match parts:
            case ["cluster"]:
                found: dict[str, Handler] = {"GET": self._cluster}
            case ["nodes"]:
                found = {"GET": self._nodes}
            case ["nodes", name, "cordon" | "uncordon" as verb]:
                found = {"POST": lambda request, rights: self._cordon(request, rights, name, verb)}
            case ["nodes", name]:
                found = {"GET": lambda request, rights: self._node(request, rights, name)}
            case ["queue"]:
                found = {"GET": self._queue}
            case ["recording"]:
                found = {"GET": self._recorded_clusters().page}
            case ["recording", "replay"]:
                found = {"POST": self._recorded_clusters().replay}
            case ["recording", index]:
                recordings = self._recorded_clusters()
                found = {"GET": lambda request, rights: recordings.decision(request, rights, index)}
            case ["what-if"]:
                found = {"POST": self.what_ifs.serve}
            case ["stream"]:
                found = {"GET": self.streams.serve}
            case ["pods"]:
                found = {"GET": self._pods, "POST": self.actions.create_pods}
            case ["pods", namespace, name]:
                found = {
                    "GET": lambda request, rights: self._pod(request, rights, namespace, name),
                    "DELETE": lambda request, rights: self._delete(request, rights, namespace, name),
                }
            case ["pods", namespace, name, "why-not", node]:
                found = {"GET": lambda request, rights: self._why_not(request, rights, namespace, name, node)}
            case _:
                raise RequestError(404, f"there is no {path}; docs/web-api.md lists what there is.")
        if method not in found:
            allowed = ", ".join(found)
            raise RequestError(405, f"{path} is for {allowed}, not {method}.", headers={"Allow": allowed})
        return found[method]

    # The cluster

    async def _cluster(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        if self.recordings is not None:
            with contextlib.suppress(RequestError, OperatorMistake):  # /recording reports it
                await self.recordings.recording()
        return await json_response(request, self.cluster(rights))

    def cluster(self, rights: Rights) -> Document:
        mirror = self.mirror
        return {
            "name": mirror.name,
            "source": mirror.source,
            "revision": mirror.revision,
            "time": timestamp(mirror.clock.now()),
            "counts": self.counts(rights),
            "configuration": mirror.used.document(),
            "profiles": self._profiles(),
            "resources": self.resources(),
            "recorded": mirror.connection is not None,
            "recording": self.recordings.summary if self.recordings is not None else None,
            "actions": self.actions.are_allowed,
            "user": rights.user,
            "signedIn": bool(rights.token),
            "hiddenNamespaces": len(self._hidden(rights)),
            "notes": mirror.notes,
        }

    def counts(self, rights: Rights) -> Document:
        pods = self.mirror.pods
        if rights.all_namespaces:
            total, pending = len(pods), len(pods.pending)
        else:
            total = sum(count for name, count in pods.namespaces.items() if rights.may_see(name))
            pending = sum(1 for pod in pods.pending.values() if rights.may_see(pod.namespace))
        nodes = self.mirror.recomputation.state.node_count if rights.nodes else 0
        return {"nodes": nodes, "pods": total, "pending": pending, "bound": total - pending}

    def _profiles(self) -> list[Document]:
        found = []
        for profile in self.mirror.recomputation.profiles_by_name.values():
            points: dict[str, list[str]] = {}
            weights: dict[str, int] = {}
            for point, uses in profile.points.items():
                for plugin, weight in uses:
                    points.setdefault(plugin.name, []).append(point.value[0])
                    if point is Point.SCORE:
                        weights[plugin.name] = weight or 1
            found.append(
                {
                    "name": profile.name,
                    "plugins": [{"name": name, "points": points[name], "weight": weights.get(name)} for name in points],
                }
            )
        return found

    def resources(self) -> list[str]:
        """What nodes have."""
        state = self.mirror.recomputation.state
        generation = state.node_changes.generation
        if self._resources is None or self._resources[0] != generation:
            self._resources = generation, resources_of(state)
        return self._resources[1]

    # Nodes

    async def _nodes(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        rights.check_nodes()
        return await bytes_response(request, self._encoded_columns())

    def _encoded_columns(self) -> bytes:
        mirror, now = self.mirror, time.monotonic()
        kept = self._columns
        if kept is not None and (kept[0] == mirror.revision or now < kept[1] + FRESH_SECONDS):
            return kept[2]
        body = encoded(node_columns(mirror.recomputation.state, self.resources(), mirror.revision))
        self._columns = mirror.revision, now, body
        return body

    async def _node(self, request: web.BaseRequest, rights: Rights, name: str) -> web.StreamResponse:
        rights.check_nodes()
        view = self.mirror.recomputation.view(name)
        if view is None:
            raise not_found("node", name, self.mirror.recomputation.state.nodes.names)
        self.causes.read()
        return await json_response(
            request, node_page(self.mirror, view, self.resources(), self.causes.decisions(), rights.may_see)
        )

    # Pods

    async def _queue(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        queued, mirror = await self._queued(), self.mirror
        found = queue_page(mirror.pods, self.causes.read(), mirror.revision, may_see=rights.may_see, queued=queued)
        return await json_response(request, found)

    async def _queued(self) -> Mapping[str, Document]:
        """What the queues of schedulers of this user and machine know, by uid; every few seconds at most."""
        connection = self.mirror.connection
        if connection is None or time.monotonic() < self._queued_at + QUEUED_SECONDS:
            return self._queued_pods
        self._queued_at = time.monotonic()
        queried = await asyncio.to_thread(query, connection.server, {"queue": True})
        self.mirror.served = frozenset(served_by(queried.responses))
        self._queued_pods = {
            uid: each
            for response in queried.responses
            if isinstance(pods := response.get("queuedPods"), dict)
            for uid, each in pods.items()
            if isinstance(each, dict)
        }
        return self._queued_pods

    async def _pods(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        return await json_response(request, search_pods(self.mirror.pods, request.query, rights))

    async def _pod(self, request: web.BaseRequest, rights: Rights, namespace: str, name: str) -> web.StreamResponse:
        pod = self.pod(rights, namespace, name)
        most = None if request.query.get("nodes") == "all" else SHOWN_NODES
        scheduler = await self._recorded(pod)
        # The watch may have replaced it meanwhile.
        pod = self.pod(rights, namespace, name)
        found = pod_page(self.mirror, pod, scheduler, most_nodes=most)
        return await json_response(request, redacted(found, self._hidden(rights)))

    async def _why_not(
        self, request: web.BaseRequest, rights: Rights, namespace: str, name: str, node: str
    ) -> web.StreamResponse:
        rights.check_nodes()
        pod = self.pod(rights, namespace, name)
        if self.mirror.recomputation.view(node) is None:
            raise not_found("node", node, self.mirror.recomputation.state.nodes.names)
        found = why_not(self.mirror.recomputation, pod, node)
        return await json_response(request, redacted(found, self._hidden(rights)))

    # Actions

    async def _cordon(self, request: web.BaseRequest, rights: Rights, name: str, verb: str) -> web.StreamResponse:
        rights.check_nodes()
        return await self.actions.cordon(request, rights, name, unschedulable=verb == "cordon")

    async def _delete(self, request: web.BaseRequest, rights: Rights, namespace: str, name: str) -> web.StreamResponse:
        return await self.actions.delete_pod(request, rights, self.pod(rights, namespace, name))

    # What several of them need

    def _hidden(self, rights: Rights) -> list[str]:
        """Namespaces whose pods the user may not see."""
        return (
            [] if rights.all_namespaces else [each for each in self.mirror.pods.namespaces if not rights.may_see(each)]
        )

    def pod(self, rights: Rights, namespace: str, name: str) -> Pod:
        """The pod, or the nearest names among those that the user may see."""
        rights.check_namespace(namespace)
        pods = self.mirror.pods
        if (pod := pods.get(namespace, name)) is not None:
            return pod
        if namespace not in pods.namespaces:
            known = [each for each in pods.namespaces if rights.may_see(each)]
            raise not_found("namespace with pods", namespace, known)
        names = [each.name for each in pods if each.namespace == namespace]
        raise not_found("pod", name, names, where=f' in namespace "{namespace}"')

    async def _recorded(self, pod: Pod) -> Recorded | None:
        """What schedulers of this user and machine know: over their sockets, which may take seconds."""
        connection = self.mirror.connection
        if connection is None:
            return None
        queried = await asyncio.to_thread(query, connection.server, {"explain": pod.key})
        try:
            return recorded(queried.responses, queried.problems, pod, is_unresponsive=queried.is_unresponsive)
        except Fault as error:
            return Recorded({}, [str(error)], False)
