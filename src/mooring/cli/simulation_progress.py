"""How far a simulation is: a bar on a terminal, a line a second otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from mooring.cli.output import print_line, print_progress

SECONDS, BAR_SECONDS = 1.0, 0.1
WIDTH = 16


class SimulationProgress:
    """Called with the number of pods that were tried and the simulated seconds."""

    def __init__(
        self,
        name: str,
        pods: int,
        *,
        is_terminal: bool | None = None,
        now: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._name, self._pods = name, pods
        self._is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
        self._apart = BAR_SECONDS if self._is_terminal else SECONDS
        self._now, self._cpu = now, cpu
        self._began: float | None = None
        self._shown = self._cpu_began = 0.0

    def __call__(self, tried: int, seconds: float) -> None:
        now = self._now()
        if self._began is None:
            self._began = self._shown = now
            self._cpu_began = self._cpu()
        if now < self._shown + self._apart:
            return
        self._shown = now
        line = self._line(tried, seconds, now - self._began)
        if self._is_terminal:
            filled = WIDTH * tried // self._pods if self._pods else WIDTH
            print_progress(f"{self._name} [{'#' * filled}{'.' * (WIDTH - filled)}] {line}")
        else:
            print_line(f"{self._name}: {line}", err=True)

    def _line(self, tried: int, seconds: float, passed: float) -> str:
        from mooring.simulator.figures import duration

        rate = tried / passed if passed else 0.0
        left = f"{(self._pods - tried) / rate:.0f} s left" if rate and tried < self._pods else "retrying pods"
        return f"{tried:,}/{self._pods:,} pods, {rate:,.0f}/s, {left} ({duration(seconds)} simulated)"

    def end(self) -> None:
        """The bar gives way to a line that stays."""
        if self._is_terminal:
            print_progress("")
        cpu = self._cpu() - self._cpu_began if self._began is not None else 0.0
        print_line(f"{self._name}: simulated in {cpu:.1f} s of CPU time", err=True)
