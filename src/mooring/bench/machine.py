"""The machine that figures come from: they compare with others of the same machine only."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import mooring


@dataclass(frozen=True)
class Machine:
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    mooring: str
    load: float
    """Processes that wanted a core in the last minute; where it is near the cores or above, figures are noisy."""

    def __str__(self) -> str:
        return (
            f"{self.cores} cores ({self.processor}), {self.memory_gib:.0f} GiB, {self.system}, Python {self.python}, "
            f"Mooring {self.mooring}; load average before the first run {self.load:.1f}"
        )


def this_machine(proc: Path = Path("/proc")) -> Machine:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(
        processor=_field(proc / "cpuinfo", "model name") or platform.machine(),
        cores=cores,
        memory_gib=float((_field(proc / "meminfo", "MemTotal") or "0").split()[0]) / (1 << 20),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        mooring=mooring.__version__,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
    )


def _field(path: Path, name: str) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
