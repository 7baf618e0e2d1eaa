"""Does another scheduler bind the pods of our profiles?

The Scheduled events of the last hour name the scheduler that bound each pod. Two on one host write the same name there;
a running Mooring scheduler detects the other one nevertheless, and records an event. One alone is another one, too,
unless it holds the lease that the planned scheduler waits for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from mooring.base.clock import parse_timestamp
from mooring.base.errors import MooringError
from mooring.client import ApiClient
from mooring.client.recorder import CORE_EVENTS
from mooring.doctor.findings import Finding, good, notice, unknown
from mooring.scheduler.introspection.foreign_bindings import BOUND_BY_ANOTHER, WHAT_TO_DO

CHECK = "schedulers"
MINUTES_FROM_SECONDS = 120
"""Longer ago is shown in minutes."""
TO_DO = "Give one of them another schedulerName, let them share a lease, or stop one: they overfill nodes together."


@dataclass
class _Active:
    """From when to when a scheduler bound pods."""

    first: float
    last: float


async def examine_other_schedulers(
    client: ApiClient, profiles: Collection[str], holder: str, ahead_seconds: float
) -> list[Finding]:
    """`holder`: who holds the lease of the planned scheduler. `ahead_seconds`: how far the server's clock is ahead."""
    try:
        events = await client.list(CORE_EVENTS, field_selector="reason=Scheduled")
        noticed = await client.list(CORE_EVENTS, field_selector=f"reason={BOUND_BY_ANOTHER}")
    except MooringError as error:
        return [unknown(CHECK, f"cannot check whether another scheduler binds pods of these profiles: {error}")]
    active: dict[str, dict[str, _Active]] = {name: {} for name in profiles}
    for event in events:
        profile = _profile(event)
        at = event.get("eventTime") or event.get("firstTimestamp")
        if profile in active and at:
            when = parse_timestamp(at)
            seen = active[profile].setdefault(event.get("reportingInstance", ""), _Active(when, when))
            seen.first, seen.last = min(seen.first, when), max(seen.last, when)
    findings = [_together(profile, names) for profile in profiles if (names := _overlapping(active[profile].items()))]
    if not findings:
        findings = [_noticed(last) for profile in profiles if (last := _latest(noticed, profile))]
    if not findings:
        now = client.clock.now() + ahead_seconds
        findings = [
            _alone(profile, name, now - seen.last)
            for profile in profiles
            for name, seen in sorted(active[profile].items(), key=lambda each: each[1].last)[-1:]
            if not _holds(holder, profile, name)
        ]
    return findings or [good(CHECK, f"no other scheduler binds pods of {', '.join(profiles)}")]


def _profile(event: Mapping[str, Any]) -> str:
    return str(event.get("reportingComponent") or (event.get("source") or {}).get("component", ""))


def _latest(events: Sequence[Mapping[str, Any]], profile: str) -> Mapping[str, Any] | None:
    ours = [event for event in events if _profile(event) == profile]
    return max(ours, key=lambda event: event.get("eventTime") or "", default=None)


def _noticed(event: Mapping[str, Any]) -> Finding:
    pod = event.get("involvedObject") or {}
    note = str(event.get("message", "")).partition(f" {WHAT_TO_DO}")[0]
    message = f"the scheduler reports about pod {pod.get('namespace')}/{pod.get('name')}: {note}"
    return notice(CHECK, message, TO_DO)


def _overlapping(active: Iterable[tuple[str, _Active]]) -> list[str]:
    """The schedulers that bound pods at the same time; one that took over from another does not count."""
    pairs = [
        {one, other}
        for (one, its), (other, theirs) in combinations(active, 2)
        if its.first < theirs.last and theirs.first < its.last
    ]
    return sorted(set().union(*pairs)) if pairs else []


def _holds(holder: str, profile: str, name: str) -> bool:
    """Whether this scheduler has the lease: its identity is its host, an underscore and a unique part."""
    host = holder.rpartition("_")[0] or holder
    return bool(host) and name in (host, f"{profile}-{host}")


def _alone(profile: str, name: str, seconds: float) -> Finding:
    ago = f"{seconds:.0f} s" if seconds < MINUTES_FROM_SECONDS else f"{seconds / 60:.0f} minutes"
    message = f"{name or 'another scheduler'} bound pods with schedulerName {profile} {ago} ago"
    return notice(
        CHECK, message, f"Nothing, if that is this scheduler, or the one that it replaces. Otherwise: {TO_DO}"
    )


def _together(profile: str, names: list[str]) -> Finding:
    message = f"{' and '.join(names)} bind pods with schedulerName {profile} at the same time"
    return notice(CHECK, message, TO_DO)
