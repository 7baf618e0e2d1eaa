"""What code raises that is not ours: which errors are its own fault, and how they read."""

from __future__ import annotations

import asyncio
import inspect
import traceback

from mooring.base.errors import MooringError
from mooring.base.redaction import scrubbed

_SUSPENDABLE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def is_its_own(error: BaseException) -> bool:
    """Whether the called code is at fault: not Ctrl-C, not the cancellation and not the closing of the calling task.

    A plugin that awaits something cancelled raises CancelledError too; taken for our own, it would end the calling
    task and lose its pod. Call it where the error is caught.
    """
    if isinstance(error, KeyboardInterrupt):
        return False
    if isinstance(error, GeneratorExit):
        return not _is_closing_caller(error)
    if not isinstance(error, asyncio.CancelledError):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop is running: nothing can be cancelled
        return True
    return task is None or not task.cancelling()


def _is_closing_caller(error: GeneratorExit) -> bool:
    """`close()` throws a new GeneratorExit into each suspended frame; one raised by called code comes from below."""
    trace = error.__traceback__
    return trace is None or (trace.tb_next is None and bool(trace.tb_frame.f_code.co_flags & _SUSPENDABLE))


def described(error: BaseException) -> str:
    """Our own errors are sentences; for others the type is more helpful than the text (KeyError: 'zone').

    Errors of HTTP libraries hold whole addresses, and this goes into events: credentials are cut.
    """
    if isinstance(error, MooringError):
        return text_of(error)
    text = scrubbed(text_of(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(value: object) -> str:
    """`str(value)`; a placeholder where its own `__str__` raises."""
    try:
        return str(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{type(value).__name__}, whose __str__ raises {type(error).__name__}>"


def raised(error: BaseException, called: object) -> dict[str, str]:
    """For the log: what a function of a plugin raised, and where in its file, as far as that is known."""
    code = getattr(inspect.unwrap(called) if callable(called) else called, "__code__", None)
    file = None if code is None else code.co_filename
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file
    ]
    return {"err": described(error)} | ({"at": places[-1]} if places else {})
