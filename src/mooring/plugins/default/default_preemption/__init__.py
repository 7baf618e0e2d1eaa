"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority.

`plugin` decides whether to preempt and on which nodes to try, `victims` whom one node would lose, `choice` which node
is the best of those.
"""

from mooring.plugins.default.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
