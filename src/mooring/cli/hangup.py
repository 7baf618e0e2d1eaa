"""SIGHUP, from the first line of our Python to the end: it makes `mooring run` reload, and never ends it.

One that comes before there is anything to reload is remembered. Imported before everything else, so it imports nothing
that takes time. Before our first line the launcher (`launcher/mooring`) has the signal ignored.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

KUBE_SCHEDULER = "kube-scheduler"
"""Under this name the program is `mooring run`."""


class _Hangup:
    def __init__(self) -> None:
        self.is_held = False
        self.is_pending = False
        self.listener: Callable[[], None] | None = None

    def arrived(self, *_: object) -> None:
        if self.listener is None:
            self.is_pending = True
        else:
            self.listener()


_hangup = _Hangup()


def reloads(program: str, arguments: list[str]) -> bool:
    """All other commands end by SIGHUP, as a closed terminal should end them. The launcher has the same rule."""
    return program == KUBE_SCHEDULER or arguments[:1] == ["run"]


def hold_for(program: str, arguments: list[str]) -> None:
    """From now on, if this command reloads on it, SIGHUP does not end the process."""
    if reloads(program, arguments):
        hold()


def hold() -> None:
    """One handler for the whole life of the process: to exchange it would open a gap."""
    signal.signal(signal.SIGHUP, _hangup.arrived)
    _hangup.is_held = True


def is_held() -> bool:
    return _hangup.is_held


def listen(listener: Callable[[], None]) -> None:
    """Call it for each SIGHUP, in the main thread; and at once, if one has come already."""
    hold()
    _hangup.listener = listener
    if _hangup.is_pending:
        _hangup.is_pending = False
        listener()


def unlisten() -> None:
    """There is nothing to reload any more; the signal must not cut the end short either."""
    _hangup.listener = None


def ignore() -> None:
    """At exit: Python itself restores the default handler when it finalizes."""
    if _hangup.is_held:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
