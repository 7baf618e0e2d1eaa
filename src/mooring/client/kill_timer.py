"""Has the kernel kill this process at a moment, unless it is disarmed before.

Some microseconds lie between the check of the lease and the system call that passes a write to the kernel. A process
can be stopped right there, for any time, and no check of its own prevents that it then goes on with the call. The
kernel can: it also kills a process that is stopped or frozen, by a clock that goes on while the machine is suspended.
"""

from __future__ import annotations

import ctypes
import signal
import time

_ABSOLUTE_TIME = 1
_BY_SIGNAL = 0


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Time), ("expires", _Time))


class _Event(ctypes.Structure):
    """`struct sigevent`, which has 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("_rest", ctypes.c_byte * (64 - ctypes.sizeof(ctypes.c_void_p) - 2 * ctypes.sizeof(ctypes.c_int))),
    )


class KillTimer:
    """A timer of the kernel for this process, by `boottime`. Raises OSError where the system has none."""

    def __init__(self) -> None:
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        if clock is None:
            raise OSError("this system has no clock that goes on while it is suspended")
        library = ctypes.PyDLL(None, use_errno=True)  # keeps the GIL: no other thread runs between check and write
        try:
            create, self._set = library.timer_create, library.timer_settime
        except AttributeError as error:
            raise OSError("the C library has no timers") from error
        self._timer = ctypes.c_void_p()
        event = _Event(signal=signal.SIGKILL, notify=_BY_SIGNAL)
        if create(clock, ctypes.byref(event), ctypes.byref(self._timer)) != 0:
            raise OSError(ctypes.get_errno(), "timer_create")
        self._at = 0.0
        self._armed, self._disarmed = _Setting(), _Setting()
        self._armed_at, self._never = ctypes.byref(self._armed), ctypes.byref(self._disarmed)

    def arm(self, at: float) -> None:
        if at != self._at:
            self._at = at
            seconds = int(at)
            self._armed.expires = _Time(seconds, int((at - seconds) * 1e9))
        self._set(self._timer, _ABSOLUTE_TIME, self._armed_at, None)

    def disarm(self) -> None:
        self._set(self._timer, _ABSOLUTE_TIME, self._never, None)
