"""`python -m mooring.bench`: prints a table of what a decision costs."""

from __future__ import annotations

import click

from mooring.bench.decide import WORKLOADS, measure


@click.command()
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True, help="Nodes in the table.")
@click.option("--pods", type=click.IntRange(min=1), default=1000, show_default=True, help="Pods to decide.")
@click.option("--workload", type=click.Choice(list(WORKLOADS)), multiple=True, help="Which pods.  [default: all]")
def main(nodes: int, pods: int, workload: tuple[str, ...]) -> None:
    """Measure the CPU time of decide, assume and the keeping of evidence, per pod.

    \b
    Example:
      python -m mooring.bench --nodes 5000 --pods 1000 --workload basic
    """
    click.echo(f"{'workload':<14}{'nodes':>8}{'decide':>12}{'assume':>12}{'evidence':>12}   (us of CPU a pod)")
    for name in workload or WORKLOADS:
        figure = measure(name, nodes, pods)
        click.echo(
            f"{name:<14}{nodes:>8}{figure.decide_micros:>12.0f}{figure.assume_micros:>12.0f}"
            f"{figure.evidence_micros:>12.0f}"
        )


main()
