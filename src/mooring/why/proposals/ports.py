"""NodePorts: which pod holds the host port."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.framework import PlacedPod
from mooring.objects.placed import host_ports
from mooring.plugins.default.node_ports import Wanted
from mooring.why.changes import ProposedChange
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode


def gap(case: RejectedNode) -> Gap:
    holders = _holders(case)
    wanted = host_ports(case.pod)
    held = [
        f"{port}/{protocol} ({pod.key} holds it)"
        for address, protocol, port in wanted
        for pod in holders
        if Wanted(((address, protocol, port),)).conflicts(pod.ports)
    ]
    return Gap(f"has no free host port {' and '.join(held)}", len(holders)) if held else evictions.gap(case)


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    yield from evictions.deletions(case, _holders(case))


def _holders(case: RejectedNode) -> list[PlacedPod]:
    wanted = Wanted(host_ports(case.pod))
    return [pod for pod in case.view.pods if pod.ports and wanted.conflicts(pod.ports)]
