"""One extender: its requests, over HTTP or HTTPS, and a fault with its name where it fails."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw
from yarl import URL

from mooring.base.errors import OperatorMistake, PluginFault, Problem
from mooring.base.redaction import scrubbed, shown_url
from mooring.client import Connection
from mooring.client.connection_pool import ConnectionPool, Endpoint
from mooring.client.fence import Fenced, WriteFence
from mooring.client.proxy import environment_proxy
from mooring.config.model import Extender, ExtenderTls
from mooring.engine import EXTENDER
from mooring.framework import Pod
from mooring.scheduler.extenders import wire

Response = TypeVar("Response")

OK = 200


class ExtenderFault(PluginFault):
    """An extender is unavailable or timed out, returned an error, or an invalid response."""

    def __init__(self, message: str) -> None:
        super().__init__(EXTENDER, message)


class ExtenderClient:
    """Calls one extender. Belongs to the event loop it is first used on."""

    def __init__(self, config: Extender, fence: WriteFence | None = None) -> None:
        self.config = config
        self._fence = fence
        self.name = shown_url(config.url_prefix)
        self._base = config.url_prefix.rstrip("/")
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._trust = _trust(config, self.name)
        self._server_name = (config.tls.server_name or None) if config.tls else None
        self._pool: ConnectionPool | None = None

    def is_interested(self, pod: Pod) -> bool:
        """Whether the pod uses a resource that it manages; one that manages none is interested in all."""
        return not self._managed or any(
            not self._managed.isdisjoint((*container.resources.requests, *container.resources.limits))
            for container in (*pod.spec.containers, *pod.spec.init_containers)
        )

    async def filter(self, pod: Raw, names: Sequence[str], nodes: Sequence[Raw]) -> wire.FilterResult:
        """Which of these nodes will do. Whole nodes are given where it does not know them."""
        response = await self._call(self.config.filter_verb, self._about(pod, names, nodes), wire.read_filter)
        if response.error:
            raise self._returned_error(self.config.filter_verb, response.error)
        return response

    async def prioritize(self, pod: Raw, names: Sequence[str], nodes: Sequence[Raw]) -> dict[str, int]:
        return await self._call(self.config.prioritize_verb, self._about(pod, names, nodes), wire.read_priorities)

    async def preempt(self, body: bytes) -> Mapping[str, wire.MetaVictims]:
        return await self._call(self.config.preempt_verb, body, wire.read_victims)

    async def bind(self, pod: Pod, node: str) -> None:
        body = wire.binding_args(pod.name, pod.namespace, pod.uid, node)
        error = await self._call(self.config.bind_verb, body, wire.read_binding, is_idempotent=False)
        if error:
            raise self._returned_error(self.config.bind_verb, error)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    def _about(self, pod: Raw, names: Sequence[str], nodes: Sequence[Raw]) -> bytes:
        if self.config.node_cache_capable:
            return wire.filter_args(pod, names=names)
        return wire.filter_args(pod, nodes=nodes)

    async def _call(
        self, verb: str, body: bytes, read: Callable[[bytes], Response], *, is_idempotent: bool = True
    ) -> Response:
        try:
            response = await self._send(verb, body, is_idempotent)
        except TimeoutError as error:
            raise self._fault(verb, f"it did not respond within {self.config.timeout_seconds:g} s") from error
        except (ValueError, OSError) as error:
            raise self._fault(verb, str(error) or type(error).__name__) from error
        try:
            return read(response)
        except wire.MalformedResponse as error:
            what = f"with an invalid body: {self._without_credentials(str(error))}"
            raise ExtenderFault(f"extender {self.name} responded to {verb} {what}") from error

    async def _send(self, verb: str, body: bytes, is_idempotent: bool) -> bytes:
        if is_idempotent or self._fence is None:
            return await self._post(verb, body, is_idempotent, None)
        while True:
            try:
                return await self._post(verb, body, is_idempotent, self._fence)
            except Fenced:
                await self._fence.opened()

    async def _post(self, verb: str, body: bytes, is_idempotent: bool, fence: WriteFence | None) -> bytes:
        url = f"{self._base}/{verb}"
        server, proxy = Endpoint.of(url), environment_proxy(url, os.environ)
        through = Endpoint.of(proxy) if proxy is not None else None
        if self._pool is None:
            self._pool = ConnectionPool(server, through, self._server_name)
        response = await self._pool.exchange(
            _request(url, server, through, body),
            self._trust if server.is_tls else None,
            seconds=self.config.timeout_seconds,
            connect_seconds=self.config.timeout_seconds,
            fence=fence,  # it binds in the scheduler's place, so the fence applies as to the scheduler's own writes
            is_idempotent=is_idempotent,
            # If a kept-alive connection is cut, it is unknown whether the pod was bound.
            is_new=not is_idempotent,
        )
        if response.status != OK:
            raise ExtenderFault(f"failed {verb} with extender at URL {shown_url(url)}, code {response.status}")
        return response.body

    def _fault(self, verb: str, why: str) -> ExtenderFault:
        # Errors may contain the whole address, or a part of it.
        return ExtenderFault(f"extender {self.name} cannot be called for {verb}: {self._without_credentials(why)}")

    def _returned_error(self, verb: str, error: str) -> ExtenderFault:
        return ExtenderFault(f"extender {self.name} returned an error for {verb}: {self._without_credentials(error)}")

    def _without_credentials(self, text: str) -> str:
        proxy = environment_proxy(self._base, os.environ)
        return scrubbed(text, self.config.url_prefix, *([proxy] if proxy else []))


def _request(url: str, server: Endpoint, proxy: Endpoint | None, body: bytes) -> bytes:
    target = URL(url).raw_path_qs
    lines = [f"Host: {server.host_header}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    if server.authorization is not None:
        lines.append(f"Authorization: {server.authorization}")
    if proxy is not None and not server.is_tls:  # the proxy gets the whole URL of an unencrypted request
        target = f"http://{server.authority}{target}"
        if proxy.authorization is not None:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
    return "\r\n".join((f"POST {target} HTTP/1.1", *lines, "", "")).encode("ascii") + body


def _trust(config: Extender, name: str) -> ssl.SSLContext:
    """As kube-scheduler: `enableHTTPS` without a CA means that nothing is verified."""
    if config.tls is None and not config.enable_https:
        return ssl.create_default_context()
    tls = config.tls or ExtenderTls()
    has_ca = bool(tls.ca_file or tls.ca_data)
    if tls.insecure and has_ca:
        problem = Problem("tlsConfig.insecure", "specifying a root certificates file with it is not allowed")
        raise OperatorMistake.found_in(f"extender {name}", [problem])
    has_certificate = bool(tls.cert_file or tls.cert_data) and bool(tls.key_file or tls.key_data)
    connection = Connection(
        server=name,
        source=f"extender {name}, tlsConfig",
        ca_data=tls.ca_data or None,
        ca_file=tls.ca_file or None,
        client_cert_data=(tls.cert_data or None) if has_certificate else None,
        client_cert_file=(tls.cert_file or None) if has_certificate else None,
        client_key_data=(tls.key_data or None) if has_certificate else None,
        client_key_file=(tls.key_file or None) if has_certificate else None,
        insecure_skip_tls_verify=tls.insecure or (config.enable_https and not has_ca),
    )
    return connection.ssl_context()
