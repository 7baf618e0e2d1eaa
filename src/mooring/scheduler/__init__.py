"""Wires it together: watches feed state and queue, the loop decides, bindings go out, and what happened is reported.

`attempts` is one pod's turn; read it first. `loop` takes turns, begins and ends everything. `feeds` turns watch events
into state and queue changes, `conclusions` and `binding` do what follows a decision, `failures` and `reporting` what
follows a refusal, `errands` runs beside the loop, `assembly` builds plugins from a configuration.
"""

from mooring.scheduler.loop import Scheduler

__all__ = ["Scheduler"]
