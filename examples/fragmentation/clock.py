"""Compare policies on the clock: `python -m examples.fragmentation.clock FOLDER --out clock.parquet`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mooring.base.errors import OperatorMistake
from mooring.simulator import sweep
from mooring.simulator.charts import SECONDS, SHARE, Axis, bar_chart, line_chart

from .__main__ import chosen, exit_code, seeds_of
from .evaluation import POLICIES
from .timed import run_timed

FIGURES = {
    "mean_wait_seconds": "mean wait, s",
    "large_wait_seconds": "of pods of 4 GPUs or more, s",
    "waited": "pods that waited",
    "never_bound": "pending at the end",
    "allocated": "GPU in use",
    "fragmented": "GPU fragmented",
}


def one_run(folder: str, workload: str, policy: str, load: float, seed: int, copies: int) -> dict[str, Any]:
    """The row of a run."""
    made = msgspec.to_builtins(run_timed(folder, workload, policy, seed, load, copies))
    timeline = made.pop("timeline")
    for name in ("policy", "seed", "load"):
        made.pop(name)
    columns = zip(*timeline, strict=True)
    return made | dict(zip(("at_seconds", "in_use", "waiting"), map(list, columns), strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    loads = _loads(options.loads)
    grid = {
        "policy": chosen("--policies", options.policies, list(POLICIES)),
        "load": loads,
        "seed": seeds_of(options.seeds),
    }
    common = {"folder": str(options.folder), "workload": options.workload, "copies": options.copies}
    result = sweep(grid, one_run, common=common, workers=options.workers, out=options.out)
    print(result)
    rows = [row for row in result.rows if "error" not in row]
    for load in loads:
        if here := [row for row in rows if row["load"] == load]:
            print(table(here, load))
    if options.charts is not None and rows:
        options.charts.mkdir(parents=True, exist_ok=True)
        save_charts(rows, options.charts)
        print(f"Charts are in {options.charts}.")
    return 1 if result.failed or result.is_interrupted else 0


def means(rows: Sequence[dict[str, Any]], figure: str) -> dict[str, float]:
    """Of each policy over seeds, the lowest first."""
    by_policy: dict[str, list[float]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row[figure])
    return dict(
        sorted(((policy, float(np.mean(each))) for policy, each in by_policy.items()), key=lambda each: each[1])
    )


def table(rows: Sequence[dict[str, Any]], load: float) -> str:
    """Policies by mean wait, as Markdown."""
    columns = {figure: means(rows, figure) for figure in FIGURES}
    seeds = len({row["seed"] for row in rows})
    nodes = np.mean([row["nodes"] for row in rows])
    pods = np.mean([row["pods"] for row in rows])
    lines = [f"Load {load:g}: {pods:,.0f} pods on {nodes:.0f} nodes, means of {seeds} seeds.", ""]
    lines.append(" | ".join(["| policy", *FIGURES.values()]) + " |")
    lines.append("| --- |" + " ---: |" * len(FIGURES))
    for policy in columns["mean_wait_seconds"]:
        cells = [_cell(figure, columns[figure][policy]) for figure in FIGURES]
        lines.append(" | ".join([f"| {policy}", *cells]) + " |")
    return "\n".join([*lines, ""])


def _cell(figure: str, value: float) -> str:
    return f"{100 * value:.1f} %" if figure in ("allocated", "fragmented") else f"{value:,.0f}"


def save_charts(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    loads = sorted({row["load"] for row in rows})
    waits = {
        f"load {load:g}": means([row for row in rows if row["load"] == load], "mean_wait_seconds") for load in loads
    }
    bar_chart("Mean wait of pods", waits, x=Axis(SECONDS)).save(folder / "clock-wait.svg")
    first = min(row["seed"] for row in rows)
    shown = [row for row in rows if row["seed"] == first and row["load"] == loads[-1]]
    waiting = {row["policy"]: list(zip(row["at_seconds"], row["waiting"], strict=True)) for row in shown}
    across, note = Axis(SECONDS, "since the beginning"), f"load {loads[-1]:g}, seed {first}"
    line_chart("GPU that pods wait for", waiting, x=across, y=Axis(SHARE, "of all GPUs"), note=note).save(
        folder / "clock-waiting.svg"
    )


def _loads(text: str) -> list[float]:
    try:
        loads = [float(part) for part in text.split(",")]
    except ValueError:
        loads = []
    if not loads or not all(0 < load <= 2 for load in loads):
        raise OperatorMistake(f"--loads must be shares of the GPUs, such as 0.7,0.9, got {text!r}.")
    return loads


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m examples.fragmentation.clock", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the openb trace")
    parser.add_argument("--workload", default="default", help="default: %(default)s")
    parser.add_argument("--policies", metavar="A,B", help=f"by default all: {', '.join(POLICIES)}")
    parser.add_argument("--loads", metavar="X,Y", default="0.7,0.9", help="GPU wanted of all; default: %(default)s")
    parser.add_argument("--seeds", metavar="N-M", default="42-46", help="default: %(default)s")
    parser.add_argument("--copies", type=int, metavar="N", default=1, help="of each pod; default: %(default)s")
    parser.add_argument("--workers", type=int, metavar="N", help="processes; by default one for each core")
    parser.add_argument("--out", type=Path, metavar="FILE", help="Parquet file; the same command with it resumes")
    parser.add_argument("--charts", type=Path, metavar="FOLDER", help="write charts there, as SVG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
