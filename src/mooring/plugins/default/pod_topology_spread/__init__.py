"""PodTopologySpread: keep the pods of a workload evenly spread over zones, hosts or any other domains.

`plugin` is the rule, `constraints` what a pod's constraints mean, `workloads` the constraints of a pod that has none:
those of the operator or of the system, for the pods of its Services and its controller. `queueing_hints`: which
events may make a rejected pod schedulable.
"""

from mooring.plugins.default.pod_topology_spread.args import PodTopologySpreadArgs
from mooring.plugins.default.pod_topology_spread.plugin import NO_LABEL, NOT_SPREAD, PodTopologySpread

__all__ = ["NOT_SPREAD", "NO_LABEL", "PodTopologySpread", "PodTopologySpreadArgs"]
