"""Which plugin blocks, in which method and at which line: read off the stacks, on any thread.

A plugin that computes is on the stack of the loop's thread. One that awaits is on none: its coroutines are suspended,
each in the await of the one before. A coroutine of a plugin that awaits a response of the API server is not blocked by
the plugin.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from mooring.framework import Plugin

CLIENT = "mooring.client"
_OURS = "mooring."
_CALLERS = {
    ("mooring.scheduler.plugin_runtime.supervision", "_keep"): "owner",
    ("mooring.queue.queueing_hints", "_run"): "plugin",
}
"""Functions of Mooring that call plain functions of plugins, and their variables that hold the plugin's name."""
_AWAITS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


class Holder(NamedTuple):
    """What runs, or is awaited."""

    plugin: str
    """"" where it is no plugin's code."""
    method: str
    at: str
    """file:line"""


def running_on(thread: int) -> Holder | None:
    """What the thread computes; where no plugin does, the innermost function."""
    frames = list(_outwards(sys._current_frames().get(thread)))
    if not frames:
        return None
    return _held_in(reversed(frames)) or _holder("", frames[0], frames[0])


def awaited_in(task: asyncio.Task[Any]) -> Holder | None:
    """The plugin whose code the task awaits; None where it awaits the API server, or no plugin at all."""
    return _held_in(_inwards(task.get_coro()))


def _held_in(frames: Iterable[FrameType]) -> Holder | None:
    """The innermost plugin among these frames, which begin with the outermost: its method, and its innermost line."""
    method: tuple[str, FrameType] | None = None
    innermost: FrameType | None = None
    is_function = False
    owners, called = _modules(), ""
    for frame in frames:
        module = _module(frame)
        if (local := _CALLERS.get((module, frame.f_code.co_name))) is not None:
            called = frame.f_locals.get(local, "")
        if plugin := _plugin_of(frame):
            is_another = method is None or is_function or method[0] != plugin  # preemption calls filters
            method, innermost, is_function = (plugin, frame) if is_another else method, frame, False
        elif module in owners:
            is_function = is_function or method is None
            method, innermost = method or (called or owners[module], frame), frame
        elif module.startswith(CLIENT):
            method = None
    return _holder(method[0], method[1], innermost) if method is not None and innermost is not None else None


def uncancellable_in(tasks: Iterable[asyncio.Task[Any]]) -> Holder | None:
    """A plugin's code that a task awaits although the task was cancelled."""
    held = (awaited_in(task) for task in tasks if not task.done() and task.cancelling())
    return next((holder for holder in held if holder is not None), None)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """From the innermost frame."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _inwards(awaitable: Any) -> Iterator[FrameType]:
    """From the outermost coroutine to the one that is suspended."""
    while awaitable is not None:
        for frame_name, next_name in _AWAITS:
            if hasattr(awaitable, next_name):
                if (frame := getattr(awaitable, frame_name)) is not None:
                    yield frame
                awaitable = getattr(awaitable, next_name)
                break
        else:
            return


def _holder(plugin: str, method: FrameType, innermost: FrameType) -> Holder:
    return Holder(plugin, method.f_code.co_name, f"{innermost.f_code.co_filename}:{innermost.f_lineno}")


def _plugin_of(frame: FrameType) -> str:
    """The plugin whose method this is; "" if it is no plugin's."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return first.name if isinstance(first, Plugin) else ""


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _modules() -> dict[str, str]:
    """The modules of users' plugins, with the names of the plugins: queueing hints and helpers are plain functions."""
    names: dict[str, set[str]] = {}
    for cls in _subclasses(Plugin):
        if not cls.__module__.startswith(_OURS):
            names.setdefault(cls.__module__, set()).add(cls.name or cls.__name__)
    return {module: ", ".join(sorted(plugins)) for module, plugins in names.items()}


def _subclasses(cls: type[Plugin]) -> Iterator[type[Plugin]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)
