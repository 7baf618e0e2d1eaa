"""`python -m mooring.bench`: prints what a decision, or a create, costs."""

from __future__ import annotations

import click

from mooring.bench.decide import WORKLOADS


@click.group()
def main() -> None:
    """Measure what Mooring costs on this machine."""


@main.command()
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True, help="Nodes in the table.")
@click.option("--pods", type=click.IntRange(min=1), default=1000, show_default=True, help="Pods to decide.")
@click.option("--workload", type=click.Choice(list(WORKLOADS)), multiple=True, help="Which pods.  [default: all]")
def decide(nodes: int, pods: int, workload: tuple[str, ...]) -> None:
    """Measure the CPU time of decide, assume and the keeping of evidence, per pod.

    \b
    Example:
      python -m mooring.bench decide --nodes 5000 --pods 1000 --workload basic
    """
    from mooring.bench.decide import measure

    click.echo(f"{'workload':<14}{'nodes':>8}{'decide':>12}{'assume':>12}{'evidence':>12}   (us of CPU a pod)")
    for name in workload or WORKLOADS:
        figure = measure(name, nodes, pods)
        click.echo(
            f"{name:<14}{nodes:>8}{figure.decide_micros:>12.0f}{figure.assume_micros:>12.0f}"
            f"{figure.evidence_micros:>12.0f}"
        )


@main.command()
@click.option("--pods", type=click.IntRange(min=1), default=5000, show_default=True, help="Pods to create.")
@click.option("--watchers", type=click.IntRange(min=0), default=3, show_default=True, help="Clients that watch pods.")
@click.option("--in-flight", type=click.IntRange(min=1), default=32, show_default=True, help="Creates at a time.")
def apiserver(pods: int, watchers: int, in_flight: int) -> None:
    """Measure how many pods a second the embedded API server creates, and its CPU time for each.

    \b
    Example:
      python -m mooring.bench apiserver --pods 5000 --watchers 3
    """
    from mooring.bench.apiserver import measure

    figure = measure(pods, watchers, in_flight)
    click.echo(f"{'pods':>8}{'watchers':>10}{'creates/s':>12}{'server':>12}   (us of CPU a create)")
    click.echo(f"{pods:>8}{watchers:>10}{figure.per_second:>12.0f}{figure.server_micros:>12.0f}")


if __name__ == "__main__":
    main()
