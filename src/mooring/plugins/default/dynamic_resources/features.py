"""Which parts of device allocation are switched on: the feature gates, read once."""

from __future__ import annotations

import msgspec

from mooring.framework import FeatureGates


class Features(msgspec.Struct, frozen=True):
    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    extended_resources: bool = True
    filter_timeout: bool = True
    workload_claims: bool = False
    """Whether claims can belong to a PodGroup."""

    @property
    def newer_allocator(self) -> bool:
        """kube-scheduler takes an older one where the newest features are off: it knows no distinct attributes, and
        does not mind requests for capacity."""
        return self.consumable_capacity or self.binding_conditions

    @classmethod
    def of(cls, gates: FeatureGates) -> Features:
        return cls(
            admin_access=gates.on("DRAAdminAccess"),
            prioritized_list=gates.on("DRAPrioritizedList"),
            partitionable_devices=gates.on("DRAPartitionableDevices"),
            device_taints=gates.on("DRADeviceTaints"),
            binding_conditions=gates.on("DRADeviceBindingConditions") and gates.on("DRAResourceClaimDeviceStatus"),
            consumable_capacity=gates.on("DRAConsumableCapacity"),
            extended_resources=gates.on("DRAExtendedResource"),
            filter_timeout=gates.on("DRASchedulerFilterTimeout"),
            workload_claims=gates.on("DRAWorkloadResourceClaims"),
        )
