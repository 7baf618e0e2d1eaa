"""Wires it together: watches feed state and queue, the loop decides, bindings go out, and what happened is reported.

`loop` is the path of a pod; read it first. `feeds` turns watch events into state and queue changes, `binding` runs
what follows a decision, `reporting` writes events and conditions, `assembly` builds plugins from a configuration.
"""

from mooring.scheduler.loop import Scheduler

__all__ = ["Scheduler"]
