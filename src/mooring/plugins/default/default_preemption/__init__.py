"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority.

`plugin` decides whether to preempt, `search` finds nodes and the victims on each, `budgets` which pods are protected.
`candidates` are what is found; `mooring.framework.preemption` chooses among them.
"""

from mooring.plugins.default.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
