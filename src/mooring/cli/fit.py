"""`mooring fit`: how many more pods of a manifest a cluster takes, on which nodes, and what limits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mooring.cli.cluster_source import (
    ClusterSource,
    cluster_source_options,
    config_option,
    output_option,
    print_notes,
)
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.interruption import INTERRUPTED
from mooring.cli.output import counted, print_json, print_line, print_table

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates
    from mooring.simulator import FitResult

DOES_NOT_FIT = 1
MOST_NODES = 20
"""So many are listed; `-o json` has all."""


@click.command(cls=VerbosityCommand)
@click.argument("manifest", metavar="POD.yaml")
@click.option(
    "--count",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Whether so many fit: exit code 0 if they do, 1 if not.  [default: as many as fit, up to 10,000]",
)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of a manifest that names none.  [default: default]")
@cluster_source_options
@config_option
@plugins_option
@gates_option
@output_option
@verbosity_option
def fit(
    manifest: str,
    count: int | None,
    namespace: str | None,
    source: ClusterSource,
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    output: str,
) -> int:
    """Find how many more pods of a manifest fit into a cluster, on which nodes, and what limits them.

    POD.yaml is a Pod, or an owner with a template (Deployment, StatefulSet, Job, …), whatever its number of replicas.
    The scheduler's own plugins decide; nothing is evicted, and nothing is written to the cluster. Exit code 1: fewer
    than --count fit; without it, none.

    \b
    Example:
      mooring fit web.yaml
      mooring fit job.yaml --count 50 --cluster prod.snapshot && echo there is room
    """
    from mooring.simulator import fit as run
    from mooring.simulator.planning.pod_manifests import read_pod_manifest

    registry = registry_with(plugins)
    configuration = load(config_file, registry, gates)
    cluster = source.read([configuration], registry)
    pod = read_pod_manifest(manifest, cluster, namespace)
    outside = source.outside_data(cluster, configuration, registry, gates)
    result = run(cluster, pod, configuration, count=count, registry=registry, gates=gates, outside_data=outside)
    print_notes(result.notes)
    if output == "json":
        import msgspec

        print_json(msgspec.to_builtins(result))
    else:
        _print(result, count)
    if result.is_interrupted:
        return INTERRUPTED
    return 0 if result.fits >= (count or 1) else DOES_NOT_FIT


def _print(result: FitResult, count: int | None) -> None:
    print_line(_summary(result, count))
    if result.nodes:
        rows = [[node, f"{pods:,}"] for node, pods in result.nodes.items()]
        title = f"On {len(rows):,} of {counted(result.node_count, 'node')}"
        print_table(title, ["node", "pods"], rows[:MOST_NODES])
        if len(rows) > MOST_NODES:
            print_line(f"… and {len(rows) - MOST_NODES:,} more nodes; -o json lists all.")
    if not result.is_limited:
        return
    if result.limits:
        limits = [
            [
                f"{limit.nodes:,}",
                f"{limit.only_reason:,}",
                amount(limit.resource, limit.requested) if limit.resource else "-",
                f"{amount(limit.resource, limit.most_free)} ({limit.most_free_on})" if limit.resource else "-",
                limit.reason,
            ]
            for limit in result.limits
        ]
        headings = ["nodes", "only reason", "requested", "most free on one", "reason"]
        print_table("What limits the next pod", headings, limits)
    print_line()
    print_line(result.message)
    if (dominant := result.dominant) is not None:
        what = dominant.resource if dominant.resource is not None else f'"{dominant.reason}"'
        verb = "is what" if dominant.resource is not None else "is why"
        lack = "lack" if dominant.resource is not None else "refuse it"
        print_line(f"{what} {verb} {dominant.nodes:,} of {result.node_count:,} nodes {lack}.")
    if result.would_preempt_on:
        victims = ", ".join(result.would_preempt[:5]) + (" …" if len(result.would_preempt) > 5 else "")
        print_line(f"The scheduler would evict from {result.would_preempt_on} for it: {victims}.")


def _summary(result: FitResult, count: int | None) -> str:
    if result.is_interrupted:
        return f"Interrupted: at least {result.fits:,} pods like {result.pod} fit."
    if count is not None:
        return (
            f"Yes: {counted(count, 'pod')} like {result.pod} fit."
            if result.fits >= count
            else f"No: {result.fits:,} of {counted(count, 'pod')} like {result.pod} fit."
        )
    if not result.is_limited:
        return f"{result.fits:,} more pods like {result.pod} fit; further ones were not tried (--count N tries N)."
    return f"Pods like {result.pod} that fit: {result.fits:,}." if result.fits else f"No pod like {result.pod} fits."


def amount(resource: str | None, units: int) -> str:
    """An amount in the scheduler's units, as Kubernetes writes it."""
    if resource == "cpu":
        return f"{units // 1000}" if units % 1000 == 0 else f"{units}m"
    if resource == "memory" or resource == "ephemeral-storage" or (resource or "").startswith("hugepages-"):
        if units and units % 2**30 == 0:
            return f"{units // 2**30:,}Gi"
        if units >= 2**20:
            return f"{units // 2**20:,}Mi"  # rounded down: no one counts the bytes
    return f"{units:,}"
