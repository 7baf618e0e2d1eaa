"""InterPodAffinity: near some pods, away from others. `plugin` has the rule, `wishes` what a pod asks for,
`waking` which events may help a refused pod."""

from mooring.plugins.default.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
