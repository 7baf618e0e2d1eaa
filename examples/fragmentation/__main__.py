"""Run the evaluation: `python -m examples.fragmentation FOLDER --out results.parquet`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mooring.base.errors import Fault, OperatorMistake, Problem, did_you_mean
from mooring.simulator import sweep
from mooring.simulator.charts import NUMBER, Axis, Chart, line_chart

from .evaluation import POLICIES, SEEDS, run
from .published import compared, read_curves
from .sampling import LOADS
from .trace import workloads_in

CHARTS = {
    "alloc": "GPU in use, by arrived demand",
    "frag": "Fragmented GPU, by arrived demand",
    "frag_ratio": "Fragmented part of idle GPU, by arrived demand",
}


def one_run(folder: str, workload: str, policy: str, seed: int) -> dict[str, Any]:
    """The row of a run: its curves, at loads of 0 to 130 %, and how many pods were dropped."""
    made = run(folder, workload, policy, seed)
    return {**made.samples.curves(), "dropped": made.dropped}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _run(options))


def exit_code(command: Callable[[], int]) -> int:
    """That of the command. A mistake or a fault is printed, and is 2 or 1."""
    try:
        return command()
    except OperatorMistake as mistake:
        print(f"Error: {mistake}", file=sys.stderr)
        return 2
    except Fault as fault:
        print(f"Error: {fault}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    known = workloads_in(folder)
    if not known:
        raise OperatorMistake(f"{folder} has no workloads: files openb_pod_list_NAME.csv, plain, .gz or .xz.")
    workloads = chosen("--workloads", options.workloads, known)
    policies = chosen("--policies", options.policies, list(POLICIES))
    grid = {"workload": workloads, "policy": policies, "seed": seeds_of(options.seeds)}
    result = sweep(grid, one_run, common={"folder": str(folder)}, workers=options.workers, out=options.out)
    print(result)
    rows = [row for row in result.rows if "error" not in row]
    published = read_curves(folder)
    if published is None:
        print(f"{folder} has no published curves to compare with.")
    else:
        print(*compared(rows, published), sep="\n")
    if options.charts is not None:
        options.charts.mkdir(parents=True, exist_ok=True)
        for workload in dict.fromkeys(row["workload"] for row in rows):
            for metric in CHARTS:
                chart([row for row in rows if row["workload"] == workload], metric).save(
                    options.charts / f"{workload}-{metric.replace('_', '-')}.svg"
                )
        print(f"Charts are in {options.charts}.")
    return 1 if result.failed or result.is_interrupted else 0


def chart(rows: Sequence[dict[str, Any]], metric: str) -> Chart:
    """The mean of each policy over seeds, and the range."""
    by_policy: dict[str, list[list[float]]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row[metric])
    lines: dict[str, list[tuple[float, float]]] = {}
    bands: dict[str, list[tuple[float, float, float]]] = {}
    for policy, curves in by_policy.items():
        at_loads = list(zip(LOADS, zip(*curves, strict=True), strict=True))
        present = [(load, values) for load, values in at_loads if not np.isnan(values).any()]
        lines[policy] = [(load, float(np.mean(values))) for load, values in present]
        if len(curves) > 1:
            bands[policy] = [(load, min(values), max(values)) for load, values in present]
    across = Axis(NUMBER, "arrived GPU demand, % of all GPUs")
    return line_chart(CHARTS[metric], lines, x=across, y=Axis(NUMBER, "%"), bands=bands)


def chosen(option: str, given: str | None, known: Sequence[str]) -> list[str]:
    """The names of an option, by default all. Unknown ones are reported together."""
    names = given.split(",") if given else list(known)
    problems = [
        Problem(option, f'"{name}" is none of {", ".join(known)}.{did_you_mean(name, known)}')
        for name in names
        if name not in known
    ]
    if problems:
        raise OperatorMistake.found_in("The command", problems)
    return names


def seeds_of(text: str) -> list[int]:
    """`42-51`, `42,44`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise OperatorMistake(f"--seeds must be numbers and ranges, such as 42-51 or 42,44, got {text!r}.")
        seeds += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(seeds))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m examples.fragmentation", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the openb trace")
    parser.add_argument("--workloads", metavar="A,B", help="by default all of the folder")
    parser.add_argument("--policies", metavar="A,B", help=f"by default all: {', '.join(POLICIES)}")
    parser.add_argument("--seeds", metavar="N-M", default=f"{SEEDS[0]}-{SEEDS[-1]}", help="default: %(default)s")
    parser.add_argument("--workers", type=int, metavar="N", help="processes; by default one for each core")
    parser.add_argument("--out", type=Path, metavar="FILE", help="Parquet file; the same command with it resumes")
    parser.add_argument("--charts", type=Path, metavar="FOLDER", help="write charts there, as SVG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
