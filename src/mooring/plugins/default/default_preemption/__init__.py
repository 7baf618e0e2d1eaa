"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority.

`plugin` decides whether to preempt and on which nodes to try, `victims` selects the victims on one node.
`mooring.framework.preemption` chooses among these nodes.
"""

from mooring.plugins.default.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
