"""`mooring doctor`: will this configuration work on that cluster, and if not, what has to be changed?"""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
from typing import TYPE_CHECKING, Any

import click

from mooring.base.errors import OperatorMistake
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.election import election_of, election_options
from mooring.cli.output import print_json, print_line

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.doctor import Finding, PlannedScheduler
    from mooring.framework.gates import FeatureGates

MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red"), "skipped": ("?", None)}
UNWELL = 1
REQUESTS_IN_FLIGHT = 4
"""More would only be more connections: a request takes a millisecond."""


@click.command()
@click.option("--config", "config_file", metavar="FILE", help="The configuration to check; without it, defaults.")
@plugins_option
@gates_option
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster; found as `mooring run` finds it.")
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
@click.option("--as", "user", metavar="USER", help="Check the rights of USER: system:serviceaccount:NAMESPACE:NAME.")
@click.option("--as-group", "groups", multiple=True, metavar="GROUP", help="A group of that user.")
@click.option("--shadow", is_flag=True, help="For a scheduler with --shadow, which only reads.")
@election_options
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
)
@verbosity_option
def doctor(
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    kubeconfig: str | None,
    context: str | None,
    user: str | None,
    groups: tuple[str, ...],
    shadow: bool,
    output: str,
    **election: Any,
) -> int:
    """Check a configuration and a kubeconfig against a cluster, and report what is wrong and what to do about it.

    The server, its certificate and version, our clock, the kinds and rights that the configured plugins need, the
    lease, and other schedulers that bind the same pods. Nothing is changed. Exit code 1: something will not work.

    \b
    Example:
      mooring doctor --config scheduler.yaml --as system:serviceaccount:mooring-system:mooring
    """
    findings = _examined(
        config_file, plugins, gates, kubeconfig, context, _impersonated(user, groups), shadow, election
    )
    from mooring.doctor.findings import is_well

    well = is_well(findings)
    if output == "json":
        document = {"ok": well, "findings": [finding.document() for finding in findings]}
        print_json(document)
    else:
        for finding in findings:
            _show(finding)
    return 0 if well else UNWELL


def _impersonated(user: str | None, groups: tuple[str, ...]) -> Any:
    from mooring.client import Impersonation

    if groups and user is None:
        raise click.UsageError("--as-group needs --as")
    return Impersonation(user, groups=groups) if user is not None else None


def _examined(
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    kubeconfig: str | None,
    context: str | None,
    impersonate: Any,
    shadow: bool,
    election: dict[str, Any],
) -> list[Finding]:
    from mooring.client import find_connection
    from mooring.doctor.findings import bad, good

    findings: list[Finding] = []
    try:
        plan = plan_of(config_file, plugins, gates, shadow, election)
    except OperatorMistake as mistake:
        findings.append(bad("config", str(mistake), "Correct it; `mooring config check` checks the file by itself."))
        plan = plan_of(None, (), gates, shadow, election)
        what = "the default configuration, for what follows"
    else:
        what = config_file or "the default configuration"
    findings.append(good("config", f"{what}: {', '.join(plan.profiles)}"))
    own = plan.configuration.client_connection.kubeconfig
    try:
        connection = find_connection(kubeconfig=kubeconfig, config_kubeconfig=own or None, context=context)
    except OperatorMistake as mistake:
        return [*findings, bad("kubeconfig", str(mistake), "Name another with --kubeconfig, or correct this one.")]
    if impersonate is not None:
        connection = dataclasses.replace(connection, impersonate=impersonate)
    return findings + asyncio.run(_examine(connection, plan))


def plan_of(
    config_file: str | None, plugins: tuple[str, ...], gates: FeatureGates, shadow: bool, election: dict[str, Any]
) -> PlannedScheduler:
    """The scheduler that these options describe."""
    from mooring.doctor import PlannedScheduler

    registry = registry_with(plugins)
    configuration = load(config_file, registry, gates)
    named = ["--config", config_file or "FILE", *(part for path in plugins for part in ("--plugins", path))]
    if changed := gates.changed():
        named += ["--feature-gates", ",".join(f"{name}={str(on).lower()}" for name, on in changed.items())]
    mode = ["--as", "shadow"] if shadow else []
    wanted = election_of(configuration.leader_election, election)
    if shadow and not wanted.explicit:
        wanted = dataclasses.replace(wanted, leader_elect=False)
    return PlannedScheduler(
        configuration=configuration,
        registry=registry,
        election=wanted,
        gates=gates,
        serves=not shadow,
        only_reads=shadow,
        is_lease_named=election.get("leader_elect_resource_name") is not None,
        plugins=plugins,
        remedy=f"All rules: {shlex.join(['mooring', 'manifests', *named, *mode])}",
    )


async def _examine(connection: Connection, plan: PlannedScheduler) -> list[Finding]:
    from mooring.client import ApiClient
    from mooring.doctor import examine

    async with ApiClient(connection, user_agent="mooring doctor", in_flight=REQUESTS_IN_FLIGHT) as client:
        return await examine(client, plan)


def _show(finding: Finding) -> None:
    mark, colour = MARKS[finding.verdict.value]
    first, *others = finding.message.rstrip("\n").split("\n")
    print_line(f"{finding.check:<10} {first}", mark=mark, colour=colour)
    for line in others:
        print_line(f"    {line}".rstrip())
    for number, line in enumerate(finding.to_do.rstrip("\n").split("\n") if finding.to_do else ()):
        print_line(f"    {'→' if number == 0 else ' '} {line}")
