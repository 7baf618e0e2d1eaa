"""A builder of runs."""

from __future__ import annotations

from typing import Any

from mooring.bench.e2e.measurement import Run


def a_run(contender: str, number: int = 1, workload: str = "basic", *, bound: int = 10, **figures: Any) -> Run:
    return Run(
        scenario="drain",
        workload=workload,
        contender=contender,
        round=number,
        nodes=5,
        running=0,
        pods=10,
        bound=bound,
        **figures,
    )
