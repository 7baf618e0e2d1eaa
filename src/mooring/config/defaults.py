"""kube-scheduler's default plugins and the names it knows beside them.

Every profile starts from `DEFAULT_PLUGINS`, at all points each plugin has (`multiPoint`).
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.framework.gates import FeatureGates
from mooring.framework.registry import Registry

DEFAULT_PLUGINS: Mapping[str, int] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "NodeDeclaredFeatures": 0,
}
"""Name → weight, in the order of v1.36. Weight 0 means that none is written; a score plugin then has 1."""

POD_GROUP_PLUGINS: Mapping[str, str] = {
    "GangScheduling": "GangScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}
"""Defaults for pod groups, behind the others in this order: name → the alpha gate without which there is none."""
PLACEMENT_GATE = "TopologyAwareWorkloadScheduling"
"""Without it nothing runs at the points of placements."""

REFUSED_IN_V1 = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

REMOVED: Mapping[str, str] = {
    **dict.fromkeys(REFUSED_IN_V1, "NodeVolumeLimits counts these volumes since CSI migration"),
    "NodeResourcesLeastAllocated": "use NodeResourcesFit with scoringStrategy type LeastAllocated",
    "NodeResourcesMostAllocated": "use NodeResourcesFit with scoringStrategy type MostAllocated",
    "RequestedToCapacityRatio": "use NodeResourcesFit with scoringStrategy type RequestedToCapacityRatio",
    "NodeLabel": "use NodeAffinity with addedAffinity",
    "ServiceAffinity": "use InterPodAffinity",
    "NodePreferAvoidPods": "use taints with effect PreferNoSchedule",
    "SelectorSpread": "PodTopologySpread does its job by default",
}
"""Plugins that kube-scheduler once had, and what took their place."""


def default_plugins(registry: Registry, gates: FeatureGates) -> dict[str, int]:
    """The defaults that take part: those that exist here and whose gate is on."""
    defaults = {
        name: weight
        for name, weight in DEFAULT_PLUGINS.items()
        if name in registry and (name != "NodeDeclaredFeatures" or gates.on("NodeDeclaredFeatures"))
    }
    of_groups = {name: 0 for name, gate in POD_GROUP_PLUGINS.items() if name in registry and gates.on(gate)}
    return defaults | of_groups
