"""URLs: `url("https://example.com/a?b=c").getHost()`.

Read by the rules of Go's net/url for request URIs (absolute, or a path) and refused in its words.
"""

from __future__ import annotations

import re
from typing import Any

from mooring.cel import types
from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.errors import CelError
from mooring.cel.text import quoted
from mooring.cel.types import BOOL, STRING, list_of, map_of
from mooring.cel.values import Opaque

URL_TYPE = types.struct("kubernetes.URL")

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_HOST_AS_IS = frozenset("!$&'()*+,;=:[]<>\"")
_PATH_AS_IS = frozenset("$&+,/:;=@")
_PATH_ALLOWED = frozenset("!$&'()*+,;=:@[]/")


class BadUrl(ValueError):
    """Text that is no URL, and why."""


class Url(Opaque):
    """A URL in its parts."""

    __slots__ = ("escaped_path", "host", "query", "scheme", "text")
    cel_type = URL_TYPE

    def __init__(self, text: str, scheme: str, host: str, escaped_path: str, query: str) -> None:
        self.text, self.scheme, self.host = text, scheme, host
        self.escaped_path, self.query = escaped_path, query

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def hostname(self) -> str:
        return _split_host(self.host)[0]

    @property
    def port(self) -> str:
        return _split_host(self.host)[1]


def _split_host(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or not (port.isascii() and (port.isdigit() or not port)) or name.count("[") != name.count("]"):
        name, port = host, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def parsed_url(text: str) -> Url:
    """The URL of a request URI; raises BadUrl with the reason."""
    if any(ord(character) < 0x20 or character == "\x7f" for character in text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text:
        raise BadUrl("empty url")
    body, _, fragment = text.partition("#")
    if text == "*":
        return Url(text, "", "", "*", "")
    scheme, rest = _scheme(text)
    path_text, _, _ = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise BadUrl("invalid URI for request")
        # Opaque, as in mailto:admin.
        return Url(text, scheme, "", "", rest.partition("#")[0].partition("?")[2])
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path_text = path_text[2:].partition("/")
        path_text = slash + path_text
        host = _authority(authority)
    _check_escapes(path_text, "path")
    _check_escapes(fragment, "fragment")
    query = body.partition("?")[2]
    return Url(text, scheme, host, _escaped_path(path_text.partition("#")[0]), query)


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match and text[match.end() : match.end() + 1] == ":":
        return match.group().lower(), text[match.end() + 1 :]
    if text[0] == ":":
        raise BadUrl("missing protocol scheme")
    if match is None and ":" in text.partition("/")[0] and not text.startswith("/"):
        raise BadUrl("invalid URI for request")
    return "", text


def _authority(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    host = _host(host)
    if at:
        if not all(each in _UNRESERVED or each in "!$&'()*+,;=:%@" for each in user):
            raise BadUrl("net/url: invalid userinfo")
        _check_escapes(user, "user")
    return host


def _host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise BadUrl("missing ']' in host")
        _check_port(host[end + 1 :])
    elif ":" in host:
        _check_port(host[host.rfind(":") :])
    for position, character in enumerate(host):
        if character == "%":
            if not _ESCAPE.match(host, position):
                raise BadUrl(f"invalid URL escape {quoted(host[position : position + 3])}")
            if int(host[position + 1 : position + 3], 16) < 0x80 and host[position : position + 3] != "%25":
                raise BadUrl(f"invalid URL escape {quoted(host[position : position + 3])}")
        elif ord(character) < 0x80 and character not in _UNRESERVED and character not in _HOST_AS_IS:
            raise BadUrl(f"invalid character {quoted(character)} in host name")
    return _unescaped(host)


def _check_port(port: str) -> None:
    if port and not (port[0] == ":" and re.fullmatch("[0-9]*", port[1:])):
        raise BadUrl(f"invalid port {quoted(port)} after host")


def _check_escapes(text: str, _: str) -> None:
    position = text.find("%")
    while position >= 0:
        if not _ESCAPE.match(text, position):
            raise BadUrl(f"invalid URL escape {quoted(text[position : position + 3])}")
        position = text.find("%", position + 3)


def _unescaped(text: str) -> str:
    if "%" not in text:
        return text
    raw = _ESCAPE.sub(lambda match: chr(0xDC00 + int(match.group()[1:], 16)), text)
    data = raw.encode("utf-8", "surrogatepass")
    out = re.sub(rb"\xed([\xb0-\xb3])([\x80-\xbf])", _byte_of_surrogate, data)
    return out.decode("utf-8", "replace")


def _byte_of_surrogate(match: re.Match[bytes]) -> bytes:
    return bytes([((match.group(1)[0] & 0x0F) << 6 | (match.group(2)[0] & 0x3F)) & 0xFF])


def _escaped_path(path: str) -> str:
    """The path as written where that is a proper encoding; encoded otherwise."""
    if all(each in _UNRESERVED or each in _PATH_ALLOWED or each == "%" for each in path):
        return path
    return "".join(
        each if each in _UNRESERVED or each in _PATH_AS_IS else "".join(f"%{byte:02X}" for byte in each.encode())
        for each in _unescaped(path)
    )


def _url(text: str) -> Url:
    try:
        return parsed_url(text)
    except BadUrl as problem:
        raise CelError(f"URL parse error during conversion from string: parse {quoted(text)}: {problem}") from None


def _is_url(text: str) -> bool:
    try:
        parsed_url(text)
    except BadUrl:
        return False
    return True


def _query(url: Url) -> dict[str, list[str]]:
    """Names and values; a pair that is not properly encoded is left out."""
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, value = pair.partition("=")
        try:
            _check_escapes(name, "query")
            _check_escapes(value, "query")
        except BadUrl:
            continue
        found.setdefault(_unescaped(name.replace("+", " ")), []).append(_unescaped(value.replace("+", " ")))
    return found


def _part(name: str, id: str, implementation: Any) -> Function:
    return function(name, member(id, (URL_TYPE,), STRING, implementation))


FUNCTIONS: list[Function] = [
    function("url", overload("string_to_url", (STRING,), URL_TYPE, _url)),
    _part("getScheme", "url_get_scheme", lambda url: url.scheme),
    _part("getHost", "url_get_host", lambda url: url.host),
    _part("getHostname", "url_get_hostname", lambda url: url.hostname),
    _part("getPort", "url_get_port", lambda url: url.port),
    _part("getEscapedPath", "url_get_escaped_path", lambda url: url.escaped_path),
    function("getQuery", member("url_get_query", (URL_TYPE,), map_of(STRING, list_of(STRING)), _query)),
    function("isURL", overload("is_url_string", (STRING,), BOOL, _is_url)),
]
