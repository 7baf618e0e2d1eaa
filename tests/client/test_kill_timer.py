"""A process that is stopped while it passes a write to the kernel is dead when its lease has expired."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests.client.conftest import PATIENCE_SECONDS

from mooring.client.fence import Fenced, WriteFence

# The write blocks, so that the parent can stop it between the check and the system call.
WRITER = """
import sys, time
from mooring.base.clock import boottime
from mooring.client.fence import WriteFence
from mooring.client.kill_timer import KillTimer

fence = WriteFence(timer=KillTimer())

def write(request):
    print("sending", flush=True)
    sys.stdin.readline()
    print("sent", flush=True)

fence.extend(boottime() + float(sys.argv[1]))
fence.write(write, b"")
print("done", flush=True)
sys.stdin.readline()
"""


def writer(lease_seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(lease_seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "sending\n"
    return process


def test_a_process_that_is_stopped_between_check_and_write_is_killed_when_the_lease_expires():
    with writer(lease_seconds=1) as process:
        process.send_signal(signal.SIGSTOP)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_a_write_that_is_done_in_time_leaves_no_timer():
    with writer(lease_seconds=1) as process:
        written, _ = process.communicate("\n", PATIENCE_SECONDS)
    assert written == "sent\ndone\n"
    assert process.returncode == 0


def test_a_timer_that_is_disarmed_does_not_expire():
    with writer(lease_seconds=0.5) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "sent\n"
        assert process.stdout.readline() == "done\n"
        time.sleep(0.6)  # the lease has expired, and the process waits
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(PATIENCE_SECONDS) == 0


class Recorded:
    """A timer that records when it is armed and disarmed."""

    def __init__(self, on_arm: Callable[[], None] = lambda: None) -> None:
        self.steps: list[object] = []
        self._on_arm = on_arm

    def arm(self, at: float, /) -> None:
        self.steps.append(at)
        self._on_arm()

    def disarm(self) -> None:
        self.steps.append("disarmed")


def test_the_timer_is_armed_for_the_end_of_the_lease_around_the_write():
    timer = Recorded()
    fence = WriteFence(lambda: 0.0, timer)
    fence.extend(15.0)
    fence.write(timer.steps.append, b"request")
    assert timer.steps == [15.0, b"request", "disarmed"]


def test_the_timer_is_disarmed_where_the_write_fails():
    def fails(request: bytes) -> None:
        raise ConnectionResetError

    timer = Recorded()
    fence = WriteFence(lambda: 0.0, timer)
    fence.extend(15.0)
    with pytest.raises(ConnectionResetError):
        fence.write(fails, b"request")
    assert timer.steps == [15.0, "disarmed"]


def test_before_the_first_lease_there_is_nothing_to_be_armed_for():
    timer = Recorded()
    WriteFence(lambda: 0.0, timer).write(timer.steps.append, b"request")
    assert timer.steps == [b"request"]


def test_a_lease_that_has_expired_arms_nothing():
    timer = Recorded()
    fence = WriteFence(lambda: 15.1, timer)
    fence.extend(15.0)
    with pytest.raises(Fenced):
        fence.write(timer.steps.append, b"request")
    assert timer.steps == []


def test_a_process_that_is_stopped_before_the_timer_is_armed_writes_nothing():
    times = [0.0]
    timer = Recorded(on_arm=lambda: times.append(15.1))
    fence = WriteFence(lambda: times[-1], timer)
    fence.extend(15.0)
    with pytest.raises(Fenced):
        fence.write(timer.steps.append, b"request")
    assert timer.steps == [15.0, "disarmed"]
