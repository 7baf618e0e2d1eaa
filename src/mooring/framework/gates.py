"""Feature gates: injected where plugins are built, never global.

The table holds the gates of kube-scheduler v1.36 that change a scheduler's decisions, with their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping

DEFAULTS: Mapping[str, bool] = {
    "ClearingNominatedNodeNameAfterBinding": True,
    "DRAAdminAccess": True,
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
    "DRADeviceTaints": True,
    "DRAExtendedResource": True,
    "DRAPartitionableDevices": True,
    "DRAPrioritizedList": True,
    "DynamicResourceAllocation": True,
    "InPlacePodVerticalScaling": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "NodeDeclaredFeatures": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "NominatedNodeNameForExpectation": True,
    "PodLevelResources": True,
    "SchedulerAsyncPreemption": True,
    "SchedulerPopFromBackoffQ": True,
    "SchedulerQueueingHints": True,
    "SidecarContainers": True,
    "StorageCapacityScoring": False,
    "TaintTolerationComparisonOperators": False,
}


class FeatureGates:
    """Which features are on: the defaults, and what was asked for."""

    def __init__(self, changed: Mapping[str, bool] | None = None) -> None:
        self._on = {**DEFAULTS, **(changed or {})}

    def on(self, gate: str) -> bool:
        """Whether the gate is on. An unknown gate is a programming error, so it raises."""
        return self._on[gate]
