"""What is missing where a plugin rejects a node, and which changes would do. Each is a guess until it is verified.

One file a plugin; of plugins that are not here only their own words are known, and that fewer pods may help.
"""

from mooring.why.proposals import (
    devices,
    evictions,
    node_affinity,
    pod_affinity,
    ports,
    resources,
    taints,
    topology_spread,
    volumes,
)
from mooring.why.proposals.rejected_node import Gap, Measure, Propose, RejectedNode

_KNOWN: dict[str, tuple[Measure, Propose]] = {
    "NodeResourcesFit": (resources.gap, resources.changes),
    "TaintToleration": (taints.gap, taints.changes),
    "NodeUnschedulable": (taints.uncordoned_gap, taints.uncordoned),
    "NodeAffinity": (node_affinity.gap, node_affinity.changes),
    "NodePorts": (ports.gap, ports.changes),
    "PodTopologySpread": (topology_spread.gap, topology_spread.changes),
    "InterPodAffinity": (pod_affinity.gap, pod_affinity.changes),
    "DynamicResources": (devices.gap, devices.changes),
    "VolumeBinding": (volumes.gap, volumes.changes),
    "VolumeZone": (volumes.gap, volumes.changes),
    "VolumeRestrictions": (volumes.gap, volumes.changes),
    "NodeVolumeLimits": (volumes.gap, volumes.changes),
}


def measure_of(plugin: str) -> Measure:
    """How far a node is that the plugin rejects."""
    return _KNOWN[plugin][0] if plugin in _KNOWN else evictions.gap


def proposals_of(plugin: str) -> Propose:
    """What may make the plugin accept the node."""
    return _KNOWN[plugin][1] if plugin in _KNOWN else evictions.changes


__all__ = ["Gap", "RejectedNode", "measure_of", "proposals_of"]
