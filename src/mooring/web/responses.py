"""Responses: JSON, compressed where that pays, with the headers that keep a page to itself."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from mooring.web.static_files import StaticFile

WORTH_PACKING = 4 * 1024
PACKED_BESIDE = 256 * 1024
"""What is larger is compressed on another thread."""
LEVEL = 3
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Server": "mooring",
}
JSON = "application/json; charset=utf-8"

_encode = msgspec.json.Encoder(enc_hook=lambda value: value.item() if hasattr(value, "item") else str(value)).encode


def encoded(document: Any) -> bytes:
    """JSON, also of NumPy's numbers, which plugins return."""
    return _encode(document)


async def json_response(
    request: web.BaseRequest, document: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return await bytes_response(request, encoded(document), status=status, headers=headers)


async def bytes_response(
    request: web.BaseRequest, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """JSON that is encoded already."""
    more = {**SECURITY_HEADERS, "Cache-Control": "no-store", "Content-Type": JSON, **(headers or {})}
    if len(body) >= WORTH_PACKING and accepts_gzip(request):
        pack = asyncio.to_thread(gzip.compress, body, LEVEL) if len(body) > PACKED_BESIDE else None
        body = await pack if pack is not None else gzip.compress(body, LEVEL)
        more["Content-Encoding"] = "gzip"
    more["Vary"] = "Accept-Encoding"
    return web.Response(status=status, body=body, headers=more)


def file_response(request: web.BaseRequest, file: StaticFile) -> web.Response:
    headers = {
        **SECURITY_HEADERS,
        "Cache-Control": "no-cache",
        "Content-Type": file.content_type,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("If-None-Match") == file.etag:
        return web.Response(status=304, headers=headers)
    if accepts_gzip(request) and len(file.packed) < len(file.body):
        return web.Response(body=file.packed, headers=headers | {"Content-Encoding": "gzip"})
    return web.Response(body=file.body, headers=headers)


def accepts_gzip(request: web.BaseRequest) -> bool:
    accepted = request.headers.get("Accept-Encoding", "")
    return any(each.strip().partition(";")[0] == "gzip" for each in accepted.split(","))
