"""Who leads now? Whether a scheduler that starts would lead, stand by, or wait for the lease of a dead one to
expire."""

from __future__ import annotations

from typing import Any

from mooring.base.clock import parse_timestamp
from mooring.base.errors import ApiError, MooringError
from mooring.client import ApiClient
from mooring.config import LeaderElection
from mooring.doctor.findings import Finding, good, notice, unknown
from mooring.scheduler.election.leader_election import LEASES

CHECK = "lease"
KUBE_SCHEDULER = "kube-scheduler"


async def examine_lease(client: ApiClient, election: LeaderElection, ahead_seconds: float) -> tuple[Finding, str]:
    """The finding, and who holds the lease ("": none, or not known).

    `ahead_seconds`: how far the server's clock is ahead of ours; the replicas that renew are near the server.
    """
    name = f"{election.resource_namespace}/{election.resource_name}"
    if not election.leader_elect:
        to_do = "Run one replica only, or switch leaderElection.leaderElect on."
        return notice(CHECK, "leader election is off: two schedulers would both bind pods", to_do), ""
    try:
        lease = await client.get(LEASES, election.resource_name, election.resource_namespace)
    except ApiError as error:
        if error.code == 404:
            return good(CHECK, f"no scheduler has held the lease {name} yet"), ""
        return unknown(CHECK, f"the lease {name} cannot be read: {error}"), ""
    except MooringError as error:
        return unknown(CHECK, f"the lease {name} cannot be read: {error}"), ""
    spec: dict[str, Any] = lease.get("spec") or {}
    holder = spec.get("holderIdentity")
    if not holder:
        return good(CHECK, f"no scheduler holds the lease {name}"), ""
    return _held(name, str(holder), spec, client.clock.now() + ahead_seconds, election), str(holder)


def _held(name: str, holder: str, spec: dict[str, Any], now: float, election: LeaderElection) -> Finding:
    lasts = float(spec.get("leaseDurationSeconds") or 0)
    try:
        silent = max(0.0, now - parse_timestamp(str(spec.get("renewTime", ""))))
    except ValueError:
        return unknown(CHECK, f"{holder} holds the lease {name}, and its renewTime is missing")
    if silent > lasts:
        message = f"{holder} holds the lease {name} and has not renewed it for {silent:.0f} s, which is too long"
        to_do = f"Look why it died. A scheduler that starts now takes over after {lasts:g} s."
        return notice(CHECK, message, to_do)
    message = f"{holder} holds the lease {name}, renewed {silent:.0f} s ago; a scheduler that starts now stands by"
    if election.resource_name == KUBE_SCHEDULER:
        to_do = (
            "Nothing, if that is Mooring or the scheduler that it replaces. A second scheduler beside "
            "kube-scheduler needs a lease of its own: leaderElection.resourceName."
        )
        return notice(CHECK, message, to_do)
    return good(CHECK, message)
