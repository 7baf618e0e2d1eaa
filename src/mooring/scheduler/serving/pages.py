"""The content of each path: plain pages, and the z-pages in text, JSON or YAML as the client accepts."""

from __future__ import annotations

import platform
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.base.clock import Clock, timestamp

TEXT = "text/plain; charset=utf-8"
JSON, YAML = "application/json", "application/yaml"
GROUP = "config.k8s.io"
WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
NAME = "kube-scheduler"
DEPRECATED_VERSION, VERSION = "v1alpha1", "v1beta1"


@dataclass(frozen=True)
class Reply:
    """A response. `Cache-Control` and what keeps browsers from guessing are added by the server."""

    body: str | bytes
    content_type: str = TEXT
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RequestedForm:
    """The form of the response that the client requests."""

    accept: str = ""
    for_people: bool = False
    """JSON with line breaks: for browsers and curl, as the API machinery does it."""

    @classmethod
    def of(cls, accept: str, user_agent: str, pretty: str) -> RequestedForm:
        if pretty:
            return cls(accept, pretty in ("1", "t", "T", "true", "TRUE", "True"))
        return cls(accept, user_agent.startswith(("curl", "Wget", "Mozilla/5.0")))


@dataclass(frozen=True)
class Page:
    """The content of a path, made on request."""

    content_type: str
    make: Callable[[], str | bytes]

    def reply(self, form: RequestedForm) -> Reply:
        return Reply(self.make(), self.content_type)


@dataclass(frozen=True)
class ZPage:
    """A page for people that is also served as an object of group config.k8s.io, where a client accepts that kind."""

    kind: str
    text: Callable[[], str]
    fields: Callable[[], Mapping[str, Any]]

    def reply(self, form: RequestedForm) -> Reply:
        for media, parameters in _wanted(form.accept):
            if media in ("text/plain", "text/*", "*/*"):
                return Reply(self.text())
            version = parameters.get("v", "")
            if (
                media in (JSON, YAML)
                and parameters.get("g") == GROUP
                and parameters.get("as") == self.kind
                and version in (VERSION, DEPRECATED_VERSION)
            ):
                return self._structured(media, version, form)
        return status_reply(
            form,
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, text/plain",
        )

    def _structured(self, media: str, version: str, form: RequestedForm) -> Reply:
        document = {
            "kind": self.kind,
            "apiVersion": f"{GROUP}/{version}",
            "metadata": {"name": NAME},
            **self.fields(),
        }
        old = f'299 - "This version of the {self.kind.lower()} endpoint is deprecated. Please use a newer version."'
        headers = {"Warning": old} if version == DEPRECATED_VERSION else {}
        body = _json(document, form) if media == JSON else msgspec.yaml.encode(document)
        return Reply(body, f"{media};g={GROUP};v={version};as={self.kind}", headers=headers)


@dataclass(frozen=True)
class DecisionPage:
    """Under its path, `NAMESPACE/POD`: what the scheduler has recorded of the pod, as JSON."""

    path: str
    respond: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    """As the control socket of `mooring explain` responds."""

    async def reply(self, path: str, form: RequestedForm) -> Reply:
        key = path.removeprefix(self.path)
        if key.count("/") != 1 or not all(key.split("/")):
            return status_reply(form, 404, "NotFound", f"name a pod: {self.path}NAMESPACE/POD")
        response = await self.respond({"explain": key})
        if "heldUp" in response:
            return status_reply(form, 503, "ServiceUnavailable", "the scheduler is busy", headers={"Retry-After": "1"})
        if not response.get("found") and not response.get("gating"):
            return status_reply(form, 404, "NotFound", f"there is no decision about pod {key} in memory")
        return Reply(_json(response, form), JSON)


Pages = Mapping[str, Page | ZPage]
"""By path. Each is made on the serving thread: it must only read what may be read there at any moment."""


def _json(document: Mapping[str, Any], form: RequestedForm) -> bytes:
    encoded = msgspec.json.encode(document)
    return msgspec.json.format(encoded, indent=2) if form.for_people else encoded + b"\n"


def _wanted(accept: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of an Accept header with their parameters, in the order written."""
    found = []
    for part in (accept or "*/*").split(","):
        media, *parameters = (each.strip() for each in part.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        found.append((media.lower(), {key.strip(): value.strip() for key, _, value in pairs}))
    return found


def status_reply(
    form: RequestedForm,
    code: int,
    reason: str,
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A failure in the API machinery's form."""
    document: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details is not None:
        document["details"] = details
    return Reply(_json(document | {"code": code}, form), JSON, code, headers or {})


def flagz(flags: Mapping[str, str]) -> ZPage:
    """The command line as it was understood."""
    lines = "".join(f"{name}:{value}\n" for name, value in sorted(flags.items()))
    return ZPage("Flagz", lambda: f"\n{NAME} flagz\n{WARNING}\n{lines}", lambda: {"flags": dict(sorted(flags.items()))})


def statusz(clock: Clock, version: str, emulated: str, paths: Sequence[str]) -> ZPage:
    """Since when this runs, and what it is."""
    started = clock.now()
    listed = sorted(paths)

    def text() -> str:
        up = int(clock.now() - started)
        began = time.strftime("%a %b %e %H:%M:%S UTC %Y", time.gmtime(started))
        return (
            f"\n{NAME} statusz\n{WARNING}\n\n"
            f"Started: {began}\n"
            f"Up: {up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec\n"
            f"Python version: {platform.python_version()}\n"
            f"Binary version: {version}\n"
            f"Emulation version: {emulated}\n"
            f"Paths: {' '.join(listed)}\n"
        )

    def fields() -> Mapping[str, Any]:
        return {
            "startTime": timestamp(started),
            "uptimeSeconds": int(clock.now() - started),
            # The kind has a place for the language's version, and it is named after another language.
            "goVersion": f"python{platform.python_version()}",
            "binaryVersion": version,
            "emulationVersion": emulated,
            "paths": listed,
        }

    return ZPage("Statusz", text, fields)
