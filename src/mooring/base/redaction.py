"""Keeps credentials out of what is shown: log lines, events, conditions, errors, pages, traces.

An address is shown as scheme://host:port/path. User, password, query and fragment are never shown: each is a usual
place for a credential. Texts of other libraries' errors often hold a whole address; `scrubbed` shortens each in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote

REDACTED = "REDACTED"

# A scheme without a bound would make long texts slow: a search begins at each letter.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s\"'<>`\\]+")
_AFTER_ADDRESS = ".,;:!)}"
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%A-Za-z]+\]|[\w.\-]*)(?::\d{0,5})?")
_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|secret|token|credential|api_?key|access_?key|private_?key|key_?data|authorization|cookie"
)
_NO_SECRET_NAME = re.compile(r"(?:file|path|folder|dir|name|namespace|ref|seconds|minutes|count|size|enabled)s?\Z")
_MIN_SECRET = 4
"""Shorter parts of an address would garble every text that they are cut from."""


def shown_url(url: str) -> str:
    """scheme://host:port/path, and nothing that may be a credential. What is no address but may hold one is cut."""
    if not any(mark in url for mark in "@?#"):
        return url
    scheme, host, path, _ = _parts(url)
    return f"{scheme}{host}{path}"


def redacted_url(url: str) -> str:
    """The same, and where something was cut: for a document that keeps its form."""
    if not any(mark in url for mark in "@?#"):
        return url
    scheme, host, path, cut = _parts(url)
    user = f"{REDACTED}@" if "@" in cut else ""
    return f"{scheme}{user}{host}{path}" + "".join(f"{mark}{REDACTED}" for mark in "?#" if mark in cut)


def scrubbed(text: str, *urls: str, secrets: Iterable[str] = ()) -> str:
    """The text with its addresses shortened, and without the credentials of these addresses wherever they stand."""
    if "://" in text:
        text = _ADDRESS.sub(_shortened, text)
    for secret in sorted({*secrets, *(part for url in urls for part in _credentials(url))}, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            for form in {secret, unquote(secret), quote(secret), quote(secret, safe="")}:
                text = re.sub(re.escape(form), REDACTED, text, flags=re.IGNORECASE)
    return text


def holds_credentials(url: str) -> bool:
    """Whether an address has a user, a password or a query."""
    return shown_url(url) != url


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a credential itself, and not the name of a file that does."""
    folded = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-\s]", "_", name).lower()
    return bool(_SECRET_NAME.search(folded)) and not _NO_SECRET_NAME.search(folded)


def redacted_document(value: Any, name: str = "") -> Any:
    """A document of the same form: texts below a secret's name are cut, and addresses in other texts."""
    if isinstance(value, dict):
        return {key: redacted_document(each, name if is_secret_name(name) else str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_document(each, name) for each in value]
    if not isinstance(value, str) or not value:
        return value
    if is_secret_name(name):
        return REDACTED
    return redacted_url(value) if _ADDRESS.fullmatch(value) else scrubbed(value)


def _shortened(found: re.Match[str]) -> str:
    address = found[0]
    end = len(address.rstrip(_AFTER_ADDRESS))
    return shown_url(address[:end]) + address[end:]


def _parts(url: str) -> tuple[str, str, str, str]:
    """Scheme with `://`, host with port, path, and which of `@`, `?` and `#` began something that was cut."""
    before, separator, rest = url.partition("://")
    scheme = before + separator if separator and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*", before) else ""
    rest = rest if scheme else url
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    after = rest[len(authority) :]
    # A password with `/`, `?` or `#` in it ends the host too early. What seems to be a host is then a part of it.
    if "@" in after or not _HOST.fullmatch(host):
        return scheme, REDACTED, "", ""
    path = re.split(r"[?#]", after, maxsplit=1)[0]
    return scheme, host, path, "".join(mark for mark in "@?#" if mark in rest)


def _credentials(url: str) -> Iterator[str]:
    """All in an address that may be a credential: user, password, query and its values, fragment."""
    rest = url.partition("://")[2] or url
    userinfo = rest.rpartition("@")[0]
    yield userinfo
    yield from userinfo.split(":", 1)
    yield from re.split(r"[:/?#&=@]", userinfo)
    rest, _, fragment = rest.partition("#")
    for part in (rest.partition("?")[2], fragment):
        yield part
        yield from (pair.partition("=")[2] for pair in part.split("&"))
