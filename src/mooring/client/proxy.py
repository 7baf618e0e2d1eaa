"""Which proxy the environment wants for a server: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, read as kubectl reads them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy to go through, or None to go straight. Loopback addresses are never reached through a proxy."""
    try:
        parts = urlsplit(server)
        host, port = (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None  # the server is malformed, which loading the kubeconfig reports
    proxy = _variable(environ, f"{parts.scheme}_proxy")
    if not proxy or host == "localhost" or _is_loopback(host):
        return None
    if any(_matches(entry.strip().lower(), host, port) for entry in _variable(environ, "no_proxy").split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_usable_proxy(url: str) -> bool:
    """Whether it is an address that can be connected to, over HTTP or HTTPS."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _matches(entry: str, host: str, port: int) -> bool:
    """An entry is `*`, an address, a network, or a name that also covers what is under it; perhaps with a port."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    name, _, only_port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
    if only_port and only_port != str(port):
        return False
    bare = name.removeprefix("*").removeprefix(".")
    if not bare:
        return False
    return host.endswith(f".{bare}") or (host == bare and not name.startswith((".", "*.")))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
