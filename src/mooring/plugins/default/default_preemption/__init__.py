"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority.

`plugin` decides whether to preempt and on which nodes to try, `victims` which pods one node would lose. Which of these
nodes is chosen: `mooring.framework.preemption`.
"""

from mooring.plugins.default.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
