"""kube-scheduler's leader election flags, and the election that they and the configuration file configure."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.log import Log
from mooring.cli.gotypes import Flag, GoBool, GoDuration
from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.client.fence import WriteFence
    from mooring.config.model import LeaderElection
    from mooring.scheduler.election.leadership import Leadership
    from mooring.scheduler.metrics import SchedulerMetrics

F = TypeVar("F", bound=Callable[..., Any])

_log = Log("mooring")

_UNSET = {
    "leader_elect": "true",
    "lease_duration_seconds": "15s",
    "renew_deadline_seconds": "10s",
    "retry_period_seconds": "2s",
    "resource_lock": "leases",
    "resource_name": "kube-scheduler",
    "resource_namespace": "kube-system",
}
"""The defaults where neither flag nor file has a value."""
_FLAGS: Mapping[str, tuple[str, click.ParamType[Any], str, str]] = {
    "--leader-elect": ("leader_elect", GoBool(), "BOOL", "Let one of several replicas lead; the others stand by."),
    "--leader-elect-lease-duration": ("lease_duration_seconds", GoDuration(), "DURATION", "How long a lease holds."),
    "--leader-elect-renew-deadline": ("renew_deadline_seconds", GoDuration(), "DURATION", "When the leader gives up."),
    "--leader-elect-retry-period": ("retry_period_seconds", GoDuration(), "DURATION", "How often the lease is tried."),
    "--leader-elect-resource-lock": ("resource_lock", click.STRING, "KIND", "What is held: leases."),
    "--leader-elect-resource-name": ("resource_name", click.STRING, "NAME", "The name of the lease."),
    "--leader-elect-resource-namespace": ("resource_namespace", click.STRING, "NAMESPACE", "Its namespace."),
}


def election_options(command: F) -> F:
    """The flags; the command gets them as its parameters `**flags`, None where not given."""
    for flag, (field, kind, metavar, help_text) in reversed(list(_FLAGS.items())):
        command = click.option(
            flag, cls=Flag, type=kind, default=None, unset=_UNSET[field], metavar=metavar, help=help_text
        )(command)
    return command


def election_of(before: LeaderElection, given: Mapping[str, Any]) -> LeaderElection:
    """The values of the file, or the defaults; a flag that was given wins. Inconsistent values are refused, all at
    once."""
    by_parameter = {flag.lstrip("-").replace("-", "_"): (flag, field) for flag, (field, *_) in _FLAGS.items()}
    wanted = {by_parameter[name][1]: value for name, value in given.items() if value is not None}
    election = dataclasses.replace(before, **wanted)
    problems = [
        Problem(by_parameter[name][0], message)
        for name in given
        for field, message in election.mistakes()
        if given[name] is not None and by_parameter[name][1] == field
    ]
    if election.leader_elect and problems:
        raise OperatorMistake.found_in("the command line", problems)
    return election


def fence_of(election: LeaderElection | None) -> WriteFence | None:
    """What holds the scheduler's writes back when its lease has expired; None without leader election."""
    from mooring.client.fence import WriteFence
    from mooring.client.kill_timer import KillTimer

    if election is None or not election.leader_elect:
        return None
    try:
        return WriteFence(timer=KillTimer())
    except OSError as error:
        _log.v(2).info("Failed to create a timer; a process that is stopped while it writes is not killed", err=error)
        return WriteFence()


def leadership(
    election: LeaderElection,
    connection: Connection,
    fence: WriteFence,
    metrics: SchedulerMetrics | None = None,
    *,
    component: str = "default-scheduler",
) -> Leadership:
    """The election, not begun yet. `component` is the source of its events."""
    from mooring.base.clock import SystemClock
    from mooring.scheduler.election.leadership import Leadership

    return Leadership(
        connection,
        election,
        SystemClock(),
        fence,
        component=component,
        on_lost=_end_at_once,
        on_change=lambda leads: metrics.leads(election.resource_name, leads) if metrics is not None else None,
        on_slow_path=lambda: metrics.took_slow_path(election.resource_name) if metrics is not None else None,
    )


async def leads(leader: Leadership | None, ends: Sequence[asyncio.Task[Any]], purpose: str) -> bool:
    """Wait until we lead, and report the leader meanwhile; False if one of `ends` came first.

    `purpose` completes "Standing by to …".
    """
    if leader is None:
        return True
    leader.start()
    standing_by = asyncio.create_task(leader.standing_by.wait())
    leading = asyncio.create_task(leader.leading.wait())
    await asyncio.wait([standing_by, leading, *ends], return_when=asyncio.FIRST_COMPLETED)
    if standing_by.done() and not leading.done():
        print_line(f"Standing by to {purpose}: {leader.leader} leads")
    standing_by.cancel()
    await asyncio.wait([leading, *ends], return_when=asyncio.FIRST_COMPLETED)
    leading.cancel()
    return leader.leading.is_set()


def _end_at_once(error: BaseException) -> None:
    """Another replica may lead already: nothing may be written any more, so there is no orderly shutdown."""
    _log.error("Leaderelection lost", err=error)
    sys.stderr.flush()
    os._exit(1)
