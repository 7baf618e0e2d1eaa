"""CapacityScheduling: elastic quotas. A namespace is guaranteed its min, and may borrow what others do not use.

`quotas` has the custom resource and what it limits, `usage` compares it with what pods request, `search` finds victims,
`plugin` has the rules.
"""

from mooring.plugins.community.capacity_scheduling.plugin import CapacityScheduling, CapacitySchedulingArgs

__all__ = ["CapacityScheduling", "CapacitySchedulingArgs"]
