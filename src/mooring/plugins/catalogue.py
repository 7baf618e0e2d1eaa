"""The plugins that can be configured by name from a bare install.

Add a plugin: its file, its test, its page in docs/plugins, and its line here. Plugins of installed packages and of
files come on top, by the registry's `add_entry_points` and `add_path`.
"""

from __future__ import annotations

from mooring.framework.registry import Registry
from mooring.plugins.default.default_binder import DefaultBinder
from mooring.plugins.default.node_affinity import NodeAffinity
from mooring.plugins.default.node_name import NodeName
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.plugins.default.priority_sort import PrioritySort
from mooring.plugins.default.scheduling_gates import SchedulingGates
from mooring.plugins.default.taint_toleration import TaintToleration
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
    registry.add(NodeResourcesFit, "default")
    registry.add(DefaultBinder, "default")
    registry.add(ScoreByLabel, "example")
    registry.add(CpuLabelFilter, "example")
    registry.add(RandomChoice, "example")
    registry.add(NodeCRDResourceFit, "example")
    registry.add(NetworkTraffic, "example")
    return registry
