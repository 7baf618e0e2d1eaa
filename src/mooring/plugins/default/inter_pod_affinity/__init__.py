"""InterPodAffinity: near some pods, away from others.

`plugin` has the rule, `affinity_terms` reads the terms of a pod, `queueing_hints` which events may make a rejected pod
schedulable.
"""

from mooring.plugins.default.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
