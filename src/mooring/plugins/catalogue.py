"""The plugins that can be configured by name from a bare install.

Add a plugin: its file, its test, its page in docs/plugins, and its line here. Plugins of installed packages and of
files come on top, by the registry's `add_entry_points` and `add_path`.
"""

from __future__ import annotations

from mooring.framework.registry import Registry
from mooring.plugins.community.capacity_scheduling import CapacityScheduling
from mooring.plugins.community.coscheduling import Coscheduling
from mooring.plugins.community.network_aware import NetworkOverhead, TopologicalSort
from mooring.plugins.community.node_metadata import NodeMetadata
from mooring.plugins.community.node_resource_topology import NodeResourceTopologyMatch
from mooring.plugins.community.node_resources_allocatable import NodeResourcesAllocatable
from mooring.plugins.community.pod_state import PodState
from mooring.plugins.community.preemption_toleration import PreemptionToleration
from mooring.plugins.community.qos_sort import QOSSort
from mooring.plugins.community.sysched import SySched
from mooring.plugins.community.trimaran import (
    LoadVariationRiskBalancing,
    LowRiskOverCommitment,
    Peaks,
    TargetLoadPacking,
)
from mooring.plugins.default.balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.default.default_binder import DefaultBinder
from mooring.plugins.default.default_preemption import DefaultPreemption
from mooring.plugins.default.dynamic_resources import DynamicResources
from mooring.plugins.default.gang_scheduling import GangScheduling
from mooring.plugins.default.image_locality import ImageLocality
from mooring.plugins.default.inter_pod_affinity import InterPodAffinity
from mooring.plugins.default.node_affinity import NodeAffinity
from mooring.plugins.default.node_declared_features import NodeDeclaredFeatures
from mooring.plugins.default.node_name import NodeName
from mooring.plugins.default.node_ports import NodePorts
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.plugins.default.node_volume_limits import NodeVolumeLimits
from mooring.plugins.default.pod_group_pods_count import PodGroupPodsCount
from mooring.plugins.default.pod_topology_spread import PodTopologySpread
from mooring.plugins.default.priority_sort import PrioritySort
from mooring.plugins.default.scheduling_gates import SchedulingGates
from mooring.plugins.default.taint_toleration import TaintToleration
from mooring.plugins.default.topology_placement_generator import TopologyPlacementGenerator
from mooring.plugins.default.volume_binding import VolumeBinding
from mooring.plugins.default.volume_restrictions import VolumeRestrictions
from mooring.plugins.default.volume_zone import VolumeZone
from mooring.plugins.examples.cpu_label_filter import CpuLabelFilter
from mooring.plugins.examples.network_traffic import NetworkTraffic
from mooring.plugins.examples.node_crd_resource_fit import NodeCRDResourceFit
from mooring.plugins.examples.random_choice import RandomChoice
from mooring.plugins.examples.score_by_label import ScoreByLabel


def catalogue() -> Registry:
    """A registry with every plugin that comes with Mooring."""
    registry = Registry()
    registry.add(SchedulingGates, "default")
    registry.add(PrioritySort, "default")
    registry.add(NodeUnschedulable, "default")
    registry.add(NodeName, "default")
    registry.add(TaintToleration, "default")
    registry.add(NodeAffinity, "default")
    registry.add(NodePorts, "default")
    registry.add(NodeResourcesFit, "default")
    registry.add(VolumeRestrictions, "default")
    registry.add(NodeVolumeLimits, "default")
    registry.add(VolumeBinding, "default")
    registry.add(VolumeZone, "default")
    registry.add(PodTopologySpread, "default")
    registry.add(InterPodAffinity, "default")
    registry.add(DynamicResources, "default")
    registry.add(DefaultPreemption, "default")
    registry.add(NodeResourcesBalancedAllocation, "default")
    registry.add(ImageLocality, "default")
    registry.add(DefaultBinder, "default")
    registry.add(NodeDeclaredFeatures, "default")
    registry.add(GangScheduling, "default")
    registry.add(TopologyPlacementGenerator, "default")
    registry.add(PodGroupPodsCount, "default")
    registry.add(ScoreByLabel, "example")
    registry.add(CpuLabelFilter, "example")
    registry.add(RandomChoice, "example")
    registry.add(NodeCRDResourceFit, "example")
    registry.add(NetworkTraffic, "example")
    registry.add(NodeResourcesAllocatable, "community")
    registry.add(Coscheduling, "community")
    registry.add(CapacityScheduling, "community")
    registry.add(QOSSort, "community")
    registry.add(PodState, "community")
    registry.add(NodeMetadata, "community")
    registry.add(PreemptionToleration, "community")
    registry.add(TopologicalSort, "community")
    registry.add(NetworkOverhead, "community")
    registry.add(TargetLoadPacking, "community")
    registry.add(LoadVariationRiskBalancing, "community")
    registry.add(LowRiskOverCommitment, "community")
    registry.add(Peaks, "community")
    registry.add(SySched, "community")
    registry.add(NodeResourceTopologyMatch, "community")
    return registry
