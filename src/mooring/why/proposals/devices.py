"""DynamicResources: which request of which claim finds no device, how many devices match, and what holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.base.errors import Fault
from mooring.objects.resource import ResourceClaim
from mooring.plugins.default.dynamic_resources.device_requests import ResolvedRequest, selects
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims
from mooring.plugins.default.dynamic_resources.resource_slices import DeviceId, node_matches
from mooring.why.changes import ProposedChange
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode

MOST_HOLDERS = 3


class _Unmet(NamedTuple):
    """A request that finds too few devices on the node."""

    claim: str
    request: ResolvedRequest
    matching: list[DeviceId]
    """Devices of the node that it selects, in use or not."""
    holders: list[ResourceClaim]
    """The claims that hold some of them."""


def gap(case: RejectedNode) -> Gap:
    unmet = _unmet(case)
    return Gap(" and ".join(map(_sentence, unmet)), _distance(unmet)) if unmet else evictions.gap(case)


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    """Fewer pods: those that hold the devices."""
    users = {user.uid for each in _unmet(case) for claim in each.holders for user in claim.status.reserved_for}
    pods = [pod for uid in users if (pod := case.recomputation.state.pod(uid)) is not None]
    yield from evictions.deletions(case, sorted(pods, key=lambda pod: pod.key))


def _distance(unmet: list[_Unmet]) -> float:
    return sum(1 if each.matching else 1000 for each in unmet)


def _sentence(unmet: _Unmet) -> str:
    wanted, count = unmet.request, len(unmet.matching)
    request = f"request {wanted.reference} of ResourceClaim {unmet.claim}"
    if not count:
        return f"has no device of class {wanted.device_class.name} that {request} selects"
    devices = f"{count} device{'s' * (count != 1)}"
    needs = "all" if wanted.takes_all else wanted.count
    held = "; ".join(map(_holder, unmet.holders[:MOST_HOLDERS]))
    more = len(unmet.holders) - MOST_HOLDERS
    held += f" and {more} more claims" if more > 0 else ""
    return f"has {devices} for {request}, which needs {needs}{f': {held}' if held else ''}"


def _holder(claim: ResourceClaim) -> str:
    devices = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
    pods = ", ".join(f"{claim.namespace}/{user.name}" for user in claim.status.reserved_for)
    of = f" of pod {pods}" if pods else ", which no pod uses,"
    return f"ResourceClaim {claim.key}{of} holds {', '.join(each.device for each in devices)}"


def _unmet(case: RejectedNode) -> list[_Unmet]:
    """Nothing where the reason is another one, or a selector cannot be evaluated."""
    state = case.cycle.filter_states.get(case.plugin)
    if not isinstance(state, PodClaims) or state.allocator is None:
        return []
    taken = {
        DeviceId(each.driver, each.pool, each.device): claim
        for claim in case.recomputation.known(ResourceClaim)
        if claim.status.allocation is not None
        for each in claim.status.allocation.devices.results
        if not each.admin_access
    }
    found = []
    try:
        for wanted in state.wanted:
            for request in wanted.requests:
                alternative = request.alternatives[-1]
                matching = _matching(case, state, alternative)
                free = [device for device in matching if device not in taken]
                needed = len(matching) or 1 if alternative.takes_all else alternative.count
                if len(free) < needed:
                    holders = {taken[each].key: taken[each] for each in matching if each in taken}
                    found.append(_Unmet(wanted.claim.key, alternative, matching, list(holders.values())))
    except (Fault, TimeoutError):
        return []
    return found


def _matching(case: RejectedNode, state: PodClaims, wanted: ResolvedRequest) -> list[DeviceId]:
    assert state.allocator is not None, "a claim has no allocation"
    return [
        offered.id
        for _, offered in state.allocator.slices.usable_by(case.view).candidates
        if all(selects(*selector, offered) for selector in wanted.selectors)
        and (
            not offered.has_node_selection
            or node_matches(case.view, offered.device.node_name, offered.device.all_nodes, offered.device.node_selector)
        )
    ]
