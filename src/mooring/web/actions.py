"""What the page does in the cluster, with `--allow-actions` only: cordon, uncordon, delete a pod, create pods.

Requests are sent with the user's own token; on the operator's own machine with the operator's kubeconfig. The API
server decides what they may do.
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from mooring.base.documents import read_trees
from mooring.base.errors import ApiError, MooringError
from mooring.base.nesting import decode
from mooring.client import ApiClient, Connection
from mooring.objects import Node, Pod
from mooring.objects.names import dns_label
from mooring.web.access import Rights
from mooring.web.errors import RequestError
from mooring.web.responses import json_response
from mooring.web.what_if_calls import read_body

OFF = "this page only reads; `mooring web --allow-actions` lets it write."
MOST_CREATED = 100
"""Pods of one request."""

Document = dict[str, Any]


class Actions:
    """Writes of users, where they are allowed."""

    def __init__(self, connection: Connection | None, *, are_allowed: bool) -> None:
        self._connection = connection
        self.are_allowed = are_allowed and connection is not None

    async def cordon(self, request: web.BaseRequest, rights: Rights, node: str, *, unschedulable: bool) -> web.Response:
        async with self._client(rights) as client:
            await _sent(client.patch(Node.KIND, node, None, {"spec": {"unschedulable": unschedulable}}, form="merge"))
        return await json_response(request, {"node": node, "unschedulable": unschedulable})

    async def delete_pod(self, request: web.BaseRequest, rights: Rights, pod: Pod) -> web.Response:
        async with self._client(rights) as client:
            await _sent(client.delete(Pod.KIND, pod.name, pod.namespace, uid=pod.uid))
        return await json_response(request, {"pod": pod.key, "deleted": True})

    async def create_pods(self, request: web.BaseRequest, rights: Rights) -> web.Response:
        """Body: `{pods: YAML}`. Only pods: what else a manifest has is refused before anything is created."""
        self._check()
        pods = _pods_of(await read_body(request))
        created = []
        async with self._client(rights) as client:
            for document in pods:
                found = await _sent(client.create(Pod.KIND, document, document["metadata"].get("namespace")))
                created.append(f"{found['metadata']['namespace']}/{found['metadata']['name']}")
        return await json_response(request, {"created": created}, status=201)

    def _check(self) -> None:
        if not self.are_allowed:
            raise RequestError(403, OFF)

    def _client(self, rights: Rights) -> ApiClient:
        self._check()
        assert self._connection is not None
        connection = self._connection
        if rights.token:
            # Nothing of the operator's credentials may be left beside the user's token.
            connection = Connection(
                server=connection.server,
                source="the user of the page",
                token=rights.token,
                ca_data=connection.ca_data,
                ca_file=connection.ca_file,
                insecure_skip_tls_verify=connection.insecure_skip_tls_verify,
                tls_server_name=connection.tls_server_name,
                proxy_url=connection.proxy_url,
            )
        return ApiClient(connection, user_agent="mooring web")


async def _sent(call: Any) -> Any:
    try:
        return await call
    except ApiError as error:
        status = error.code if error.code in (400, 401, 403, 404, 409, 422, 429) else 502
        raise RequestError(status, f"the API server refused: {error.message}") from error
    except MooringError as error:
        raise RequestError(503, f"the API server does not respond: {error}") from error


def _pods_of(body: bytes) -> list[Document]:
    try:
        text = decode(body, dict[str, str]).get("pods", "")
    except msgspec.DecodeError as error:
        raise RequestError(400, f"the request cannot be read: {error}.") from error
    documents = [tree.plain() for tree in read_trees(text, "pods")]
    if not documents or len(documents) > MOST_CREATED:
        raise RequestError(400, f"give the manifests of 1 to {MOST_CREATED} pods.", field="pods")
    for place, document in enumerate(documents):
        if not isinstance(document, dict) or document.get("kind") != "Pod" or document.get("apiVersion") != "v1":
            raise RequestError(400, "only pods (v1) can be created from here.", field=f"pods[{place}]")
        metadata = document.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
            raise RequestError(400, "a pod needs a name.", field=f"pods[{place}].metadata.name")
        namespace = metadata.get("namespace")
        if namespace is not None and (not isinstance(namespace, str) or dns_label(namespace)):
            raise RequestError(400, "this cannot be a namespace.", field=f"pods[{place}].metadata.namespace")
    return documents
