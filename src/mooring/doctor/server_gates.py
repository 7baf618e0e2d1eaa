"""Are gates that are on here off in the API server? It drops the fields of PodGroups behind them, in silence.

Which gates a kube-apiserver has on is one of its metrics. GenericWorkload is not looked for: without it PodGroups are
not served.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mooring.base.errors import ApiError, MooringError
from mooring.client import ApiClient
from mooring.doctor.findings import Finding, good, notice, unknown
from mooring.framework.gates import FeatureGates

CHECK = "gates"
METRICS = "/metrics"
DROPPED = {
    "TopologyAwareWorkloadScheduling": "drops schedulingConstraints of PodGroups, which are placed without them",
    "WorkloadAwarePreemption": "drops priority and disruptionMode of PodGroups, which are all preempted pod by pod",
    "DRAWorkloadResourceClaims": "drops resourceClaims of PodGroups, and their pods share no devices",
}
"""What the API server does without a gate."""

_FEATURE = re.compile(rb'^kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])$', re.MULTILINE)


async def examine_server_gates(client: ApiClient, gates: FeatureGates) -> list[Finding]:
    """The server serves PodGroups."""
    needed = [gate for gate in DROPPED if gates.on(gate)]
    if not needed:
        return []
    try:
        features = dict(_FEATURE.findall(await client.transport.request("GET", METRICS)))
    except MooringError as error:
        code = error.code if isinstance(error, ApiError) else None
        why = f"it has no {METRICS}" if code == 404 else str(error)
        return [_not_read(needed, why, is_forbidden=code == 403)]
    on = {name.decode(): value == b"1" for name, value in features.items()}
    if unnamed := [gate for gate in needed if gate not in on]:
        return [_not_read(unnamed, f"its {METRICS} do not name them")]
    off = [gate for gate in needed if not on[gate]]
    return [_off(gate) for gate in off] or [good(CHECK, f"the API server has {', '.join(needed)} on, too")]


def _off(gate: str) -> Finding:
    to_do = f"Start kube-apiserver with --feature-gates={gate}=true, or leave the gate off here."
    return notice(CHECK, f"the API server has {gate} off: it {DROPPED[gate]}", to_do)


def _not_read(gates: Sequence[str], why: str, *, is_forbidden: bool = False) -> Finding:
    message = f"whether the API server has {', '.join(gates)} on cannot be found out: {why}"
    to_do = f"Run the doctor as a user who may get {METRICS}: ClusterRole system:monitoring grants it."
    return unknown(CHECK, message, to_do if is_forbidden else "")
