"""`mooring drain-check`: whether nodes can go, where their pods would run, and what objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mooring.base.errors import OperatorMistake
from mooring.cli.cluster_source import (
    ClusterSource,
    cluster_source_options,
    config_option,
    output_option,
    print_notes,
)
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import counted, print_json, print_line, print_table

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates
    from mooring.simulator import Cluster, DrainResult

CANNOT_GO = 1
MOST_PODS = 50
_ORDER = ("pending", "unserved", "moves")
"""So many are listed; `-o json` has all."""


@click.command("drain-check", cls=VerbosityCommand)
@click.argument("nodes_to_drain", metavar="NODE...", nargs=-1)
@click.option("-l", "--selector", metavar="LABELS", help="Also nodes with these labels, as kubectl selects them.")
@click.option("--force", is_flag=True, help="Accept that pods without a controller are deleted for good.")
@click.option("--delete-emptydir-data", is_flag=True, help="Accept that data in emptyDir volumes is lost.")
@cluster_source_options
@config_option
@plugins_option
@gates_option
@output_option
@verbosity_option
def drain_check(
    nodes_to_drain: tuple[str, ...],
    selector: str | None,
    force: bool,
    delete_emptydir_data: bool,
    source: ClusterSource,
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    output: str,
) -> int:
    """Check whether nodes can be drained: where their pods would run, and which pods and budgets object.

    The nodes are cordoned and their pods scheduled again, all in a simulation: nothing is written to the cluster. Pods
    of DaemonSets and static pods are left out, as by `kubectl drain --ignore-daemonsets`; --force and
    --delete-emptydir-data mean what they mean there. Exit code 1: something is in the way, or it is not known, as no
    profile serves a pod.

    \b
    Example:
      mooring drain-check node-1 node-2
      mooring drain-check -l pool=old --cluster prod.snapshot --delete-emptydir-data
    """
    from mooring.simulator import drain_check as run

    if not nodes_to_drain and selector is None:
        raise click.UsageError("Name a node, or select some with --selector.")
    registry = registry_with(plugins)
    configuration = load(config_file, registry, gates)
    cluster = source.read([configuration], registry)
    names = _names(cluster, nodes_to_drain, selector)
    try:
        result = run(
            cluster,
            names,
            configuration,
            force=force,
            delete_emptydir_data=delete_emptydir_data,
            registry=registry,
            gates=gates,
            outside_data=source.outside_data(cluster, configuration, registry, gates),
        )
    except KeyboardInterrupt as interrupted:
        raise click.Abort from interrupted
    print_notes(result.notes)
    if output == "json":
        print_json(_document(result))
    else:
        _print(result)
    return 0 if result.is_possible else CANNOT_GO


def _names(cluster: Cluster, named: Sequence[str], selector: str | None) -> list[str]:
    names = [name.removeprefix("node/").removeprefix("nodes/") for name in named]
    if selector is None:
        return names
    from mooring.objects.selectors import BadSelector, parse_selector, requirement_matches

    try:
        requirements = parse_selector(selector)
    except BadSelector as mistake:
        raise OperatorMistake(f"--selector {selector} cannot be parsed: {mistake}") from mistake
    selected = [
        node.name
        for node in cluster.nodes
        if all(requirement_matches(*requirement, node.labels) for requirement in requirements)
    ]
    if not selected:
        raise OperatorMistake(f"--selector {selector} matches no node of the cluster.")
    return [*names, *selected]


def _document(result: DrainResult) -> dict[str, Any]:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(result)
    for shown, budget in zip(document["budgets"], result.budgets, strict=True):
        shown |= {"objects": budget.objects, "mustWait": budget.must_wait}
    return {"isPossible": result.is_possible, **document}


def _print(result: DrainResult) -> None:
    print_line(_verdict(result))
    fates: Counter[str] = Counter(pod.fate for pod in result.pods)
    left_out = {"stays": "of DaemonSets, or static: left there", "deleted": "deleted, and not created again"}
    moving = [pod for pod in result.pods if pod.fate not in left_out]
    if moving:
        rows = [
            [pod.pod, pod.node, pod.target or "-", f"{pod.message}{_once_gone(pod.target_once_gone)}"]
            for pod in sorted(moving, key=lambda pod: _ORDER.index(pod.fate))
        ]
        print_table("Pods that would run elsewhere", ["pod", "from", "to", "why pending"], rows[:MOST_PODS])
        if len(rows) > MOST_PODS:
            print_line(f"… and {len(rows) - MOST_PODS:,} more; -o json lists all.")
    for fate, words in left_out.items():
        if fates[fate]:
            print_line(f"{counted(fates[fate], 'pod')} {words}.")
    if result.budgets:
        rows = [
            [
                budget.budget,
                f"{budget.disruptions_allowed:,}",
                f"{len(budget.pods):,}",
                f"{budget.must_wait:,}",
                budget.message if budget.objects else "",
            ]
            for budget in result.budgets
        ]
        headings = ["budget", "allowed now", "pods here", "must wait", "objection"]
        print_table("PodDisruptionBudgets", headings, rows)
    if result.objections:
        rows = [[pod.pod, pod.node, pod.objection] for pod in result.objections[:MOST_PODS]]
        print_table("Pods that kubectl drain objects to", ["pod", "node", "objection"], rows)
    if result.evicted:
        print_table("Would be preempted to make room", ["pod"], [[key] for key in result.evicted[:MOST_PODS]])
    if result.alone:
        rows = [[node, f"{count:,}"] for node, count in result.alone.items()]
        print_table("One node at a time, each back before the next goes", ["node", "pods pending or preempted"], rows)


def _once_gone(target: str | None) -> str:
    return f" Would run on {target} when the drained nodes are deleted." if target is not None else ""


def _verdict(result: DrainResult) -> str:
    what = result.nodes[0] if len(result.nodes) == 1 else f"{len(result.nodes):,} nodes"
    if result.unserved and not result.is_impossible:
        return f"Not known: no profile serves {counted(len(result.unserved), 'pod')} of {what}."
    if result.is_possible:
        waiting = sum(budget.must_wait for budget in result.budgets)
        later = f"; {counted(waiting, 'pod')} must wait for budgets meanwhile" if waiting else ""
        return f"Yes: {what} can be drained{later}."
    reasons = (
        (len(result.pending), "pod", "would be pending"),
        (len(result.evicted), "pod", "would be preempted to make room"),
        (len(result.objecting_budgets), "budget", "would not allow an eviction"),
        (len(result.objections), "pod", "kubectl drain objects to"),
    )
    shown = ", ".join(f"{counted(number, noun)} {words}" for number, noun, words in reasons if number)
    return f"No: {what} cannot be drained as things are ({shown})."
