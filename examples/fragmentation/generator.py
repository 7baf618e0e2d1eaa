"""Small traces in the openb format, made by a seed: `python -m examples.fragmentation.generator FOLDER`.

Nodes and pods are of the kinds that such clusters have; no row is one of the published trace.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mooring.base.errors import OperatorMistake
from mooring.base.files import write_whole

from .trace import NODES, PODS

KINDS = ((96_000, 393_216, 8, "M1"), (64_000, 262_144, 4, "M2"), (48_000, 131_072, 2, "M2"), (16_000, 65_536, 1, "M3"))
"""CPU milli, memory MiB, GPUs and model of nodes."""
PARTS = (100, 250, 300, 500, 640)
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"),
    *("qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"),
)


def generate(folder: Path, nodes: int = 12, pods: int = 120, seed: int = 1, workload: str = "default") -> None:
    """Write a node list and a pod list, which have the names of the published ones: those are not replaced."""
    draw = random.Random(seed)
    node_rows = [(f"node-{number:04}", *draw.choice(KINDS)) for number in range(nodes)]
    pod_rows = [_pod(f"pod-{number:04}", draw) for number in range(pods)]
    lists = {
        folder / NODES: _text(NODE_COLUMNS, node_rows),
        folder / PODS.format(workload): _text(POD_COLUMNS, pod_rows),
    }
    try:
        for file, text in lists.items():
            if file.exists() and file.read_bytes() != text.encode():
                raise OperatorMistake(f"{file} exists and has other rows; name a new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in lists.items():
            write_whole(file, text)
    except OSError as error:
        raise OperatorMistake(f"The trace cannot be written to {folder}: {error.strerror or error}.") from error


def _pod(name: str, draw: random.Random) -> tuple[Any, ...]:
    kind = draw.random()
    count, milli = (
        (0, 0) if kind < 0.2 else (1, draw.choice(PARTS)) if kind < 0.7 else (draw.choice((1, 1, 2, 4)), 1000)
    )
    models = draw.choice(("M1", "M2|M3")) if count and draw.random() < 0.15 else ""
    created = draw.randrange(86_400)
    scheduled = created + draw.randrange(60)
    deleted = scheduled + draw.randrange(60, 43_200)
    cpu, memory = draw.choice((2_000, 4_000, 8_000, 11_000)), draw.choice((4_096, 16_384))
    return (name, cpu, memory, count, milli, models, "LS", "Running", created, deleted, scheduled)


def _text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m examples.fragmentation.generator", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--pods", type=int, default=120, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--workload", default="default", help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        generate(options.folder, options.nodes, options.pods, options.seed, options.workload)
    except OperatorMistake as mistake:
        print(f"Error: {mistake}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
