"""PreemptionToleration: preemption that spares pods whose PriorityClass tolerates it, for a while or for ever.

`tolerations` decides which pods are exempt, `search` finds nodes and victims among the others, `plugin` is
DefaultPreemption with that search.
"""

from mooring.plugins.community.preemption_toleration.plugin import PreemptionToleration

__all__ = ["PreemptionToleration"]
