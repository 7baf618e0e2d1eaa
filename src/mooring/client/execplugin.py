"""Runs the credential plugins of kubeconfig files (client.authentication.k8s.io v1 and v1beta1).

The plugin's output goes to memory instead of pipes: no amount of text on its standard error can block it, and no
grandchild that keeps a pipe open can block us.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, Any

import msgspec

from mooring.base.clock import parse_timestamp
from mooring.base.errors import Fault, OperatorMistake
from mooring.base.nesting import decode
from mooring.base.redaction import scrubbed
from mooring.base.secret_files import memory_file
from mooring.client.connection import Connection, ExecPlugin

PLUGIN_SECONDS = 60.0
"""How long a plugin may run without a terminal to prompt at."""

STDERR_SHOWN = 2_000


@dataclass(frozen=True)
class ExecCredential:
    """What a plugin gave us."""

    token: str | None
    client_certificate: bytes | None
    client_key: bytes | None
    expires_at: float | None


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _PrintedCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


async def run_plugin(plugin: ExecPlugin, connection: Connection) -> ExecCredential:
    """Run the plugin to get credentials. A failure names the plugin and shows what it wrote to standard error."""
    has_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not has_terminal:
        raise OperatorMistake(
            f"{connection.source}: credential plugin {plugin.command} needs a terminal (interactiveMode: Always), "
            "and there is none."
        )
    interactive = has_terminal and plugin.interactive_mode != "Never"
    environment = os.environ | dict(plugin.env) | {"KUBERNETES_EXEC_INFO": _exec_info(plugin, connection, interactive)}
    with memory_file() as out, memory_file() as err:
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 (starting is quick; the wait is in a thread)
                [plugin.command, *plugin.args],
                env=environment,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=out,
                stderr=None if interactive else err,
            )
        except OSError as error:
            hint = f"\n{plugin.install_hint.strip()}" if plugin.install_hint else ""
            raise OperatorMistake(
                f"{connection.source}: credential plugin {plugin.command} cannot be started: {error.strerror}.{hint}"
            ) from error
        try:
            code = await asyncio.to_thread(process.wait, None if interactive else PLUGIN_SECONDS)
        except subprocess.TimeoutExpired:
            raise Fault(
                f"{connection.source}: credential plugin {plugin.command} did not finish within "
                f"{PLUGIN_SECONDS:.0f} seconds{_stderr_of(err, plugin)}"
            ) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if code != 0:
            raise Fault(
                f"{connection.source}: credential plugin {plugin.command} failed (exit code {code})"
                f"{_stderr_of(err, plugin)}"
            )
        out.seek(0)
        return _understood(out.read(), plugin, connection)


def _understood(output: bytes, plugin: ExecPlugin, connection: Connection) -> ExecCredential:
    blame = f"{connection.source}: credential plugin {plugin.command}"
    try:
        credential = decode(output, _PrintedCredential)
    except msgspec.DecodeError as error:
        raise Fault(f"{blame} did not print an ExecCredential: {error}") from error
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        raise Fault(
            f"{blame} printed {credential.api_version or 'no apiVersion'} {credential.kind or 'without a kind'} "
            f"where {plugin.api_version} ExecCredential was requested"
        )
    status = credential.status or _Status()
    if not status.token and not status.client_certificate_data:
        raise Fault(f"{blame} printed neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise Fault(f"{blame} printed a client certificate without its key, or a key without its certificate")
    try:
        expires_at = parse_timestamp(status.expiration_timestamp) if status.expiration_timestamp else None
    except ValueError as error:
        raise Fault(f"{blame} printed an expirationTimestamp that is not a time: {error}") from error
    return ExecCredential(
        token=status.token or None,
        client_certificate=status.client_certificate_data.encode() or None,
        client_key=status.client_key_data.encode() or None,
        expires_at=expires_at,
    )


def _exec_info(plugin: ExecPlugin, connection: Connection, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster: dict[str, Any] = {"server": connection.server}
        if connection.tls_server_name:
            cluster["tls-server-name"] = connection.tls_server_name
        if connection.insecure_skip_tls_verify:
            cluster["insecure-skip-tls-verify"] = True
        elif ca := connection.ca_pem():
            cluster["certificate-authority-data"] = base64.b64encode(ca).decode("ascii")
        if connection.proxy_url:
            cluster["proxy-url"] = connection.proxy_url
        if plugin.cluster_config is not None:
            cluster["config"] = plugin.cluster_config
        spec["cluster"] = cluster
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _stderr_of(err: IO[bytes], plugin: ExecPlugin) -> str:
    size = err.seek(0, os.SEEK_END)
    err.seek(max(0, size - STDERR_SHOWN))
    text = scrubbed(err.read().decode("utf-8", "replace").strip(), secrets=plugin.env.values())
    return f": {text}" if text else ""
