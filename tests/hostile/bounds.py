"""What hostile input may cost: CPU seconds and memory, measured in a process of its own.

CPU time is the measure because other programs on the machine do not add to it. The kernel ends a child that exceeds
its CPU limit, so a test of input that would never end fails instead of hanging.

    assert bounded("tests.hostile.test_expressions:matches", "a" * 64, pattern, cpu_seconds=5) is False
"""

from __future__ import annotations

import contextlib
import importlib
import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
WALL_SECONDS = 300
"""A child that sleeps for ever uses no CPU; this only ends the test."""


class TooExpensive(AssertionError):
    """The child exceeded its CPU or memory bound, or died."""


def bounded(function: str, *args: Any, cpu_seconds: int, memory_mib: int | None = None) -> Any:
    """Call `module:function` with JSON arguments in a child process and return its JSON result.

    `cpu_seconds` covers the whole child, including the interpreter's start and its imports (about half a second).
    """
    child = subprocess.run(
        [sys.executable, "-m", "tests.hostile.bounds", function, str(cpu_seconds)],
        input=json.dumps(args),
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=WALL_SECONDS,
        check=False,
    )
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TooExpensive(f"{function} used more than {cpu_seconds} s of CPU time")
    if child.returncode != 0:
        raise TooExpensive(f"{function} ended with {child.returncode}:\n{child.stderr[-4000:]}")
    outcome = json.loads(child.stdout.splitlines()[-1])
    if memory_mib is not None and outcome["mib"] > memory_mib:
        raise TooExpensive(f"{function} used {outcome['mib']} MiB, more than {memory_mib}")
    return outcome["result"]


def _child() -> None:
    name, cpu_seconds = sys.argv[1], int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
    module, _, function = name.partition(":")
    result = getattr(importlib.import_module(module), function)(*json.load(sys.stdin))
    print(json.dumps({"result": result, "mib": peak_kib() // 1024}))


def peak_kib() -> int:
    """The most memory that this process had. Linux's getrusage also knows the peak of the process that started it."""
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    _child()
