"""Which configuration the page decides with, and how it follows the scheduler's reloads.

Without `--config`, schedulers of this user and machine are queried for theirs; with it, the file is read again when it
has changed. What was read takes over in the mirror between two decisions. A configuration that cannot take over leaves
the earlier one in force, and the page shows the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from mooring.base.clock import timestamp
from mooring.base.errors import MooringError, OperatorMistake
from mooring.base.log import Log
from mooring.config import Configuration
from mooring.framework.plugin_files import bring_back, plugin_modules
from mooring.framework.registry import Registry

LOOK_SECONDS = 2.0

_log = Log("web")

Origin = Literal["scheduler", "file", "recording", "default"]


class UsedConfiguration(msgspec.Struct, kw_only=True):
    """What the page shows about the configuration in force."""

    origin: Origin = "default"
    file: str = ""
    """Of the origin `file`, and of a recording."""
    since: float = 0.0
    """When it took over here."""
    problem: str = ""
    """Why a newer one has not taken over."""

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"origin": self.origin, "since": timestamp(self.since)}
        found |= {"file": self.file} if self.file else {}
        return found | ({"problem": self.problem} if self.problem else {})


class ReadConfiguration(NamedTuple):
    """A configuration as it was found."""

    origin: Origin
    content: Any
    """Compared with what was found before."""
    load: Callable[[], tuple[Configuration, Registry]]
    """And the plugins that it names. Raises `OperatorMistake` where it is invalid, or names some that are not known."""
    file: str = ""


Read = Callable[[], ReadConfiguration | None]
"""Called on another thread. None: no scheduler responds, or the file cannot be read: what is in force stays."""


class Adopting(Protocol):
    """A mirror, as far as its configuration goes."""

    used: UsedConfiguration

    async def adopt(self, configuration: Configuration, registry: Registry, used: UsedConfiguration) -> None:
        """Decide with this one from now on. Raises `OperatorMistake` or `Fault`; then nothing has changed."""
        ...

    def not_adopted(self, problem: str) -> None:
        """Show why a newer one is not in force."""
        ...


class ConfigurationFollower:
    """Keeps the configuration of a mirror equal to what is read."""

    def __init__(self, mirror: Adopting, read: Read, now: Callable[[], float], *, content: Any = None) -> None:
        """`content` is what the mirror was started with."""
        self._mirror = mirror
        self._read = read
        self._now = now
        self._content = content

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Adopt what is read now, if that is new."""
        found = await asyncio.to_thread(self._read)
        if found is None or (found.content == self._content and found.origin == self._mirror.used.origin):
            return
        # Also where it fails: the same content is not tried again and again.
        self._content = found.content
        used = UsedConfiguration(origin=found.origin, file=found.file, since=self._now())
        known = plugin_modules()
        try:
            configuration, registry = await asyncio.to_thread(found.load)
            await self._mirror.adopt(configuration, registry, used)
        except MooringError as error:
            bring_back(known)
            self._mirror.not_adopted(_reason(error))
            _log.warning("The page keeps its earlier configuration", err=_reason(error))


def _reason(error: MooringError) -> str:
    if isinstance(error, OperatorMistake) and error.problems:
        return "; ".join(f"{each.path}: {each.message}" for each in error.problems)
    return str(error)
