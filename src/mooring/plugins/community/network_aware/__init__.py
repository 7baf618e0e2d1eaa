"""Network-aware scheduling: pods of an application near each other, and in the order of their dependencies.

`app_groups` has the custom resources and labels that both plugins read. TopologicalSort orders the queue,
NetworkOverhead filters and scores nodes by the cost of the network between a pod and those it depends on.
"""

from mooring.plugins.community.network_aware.network_overhead import NetworkOverhead
from mooring.plugins.community.network_aware.topological_sort import TopologicalSort

__all__ = ["NetworkOverhead", "TopologicalSort"]
