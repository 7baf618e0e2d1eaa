"""The scheduler: watches feed state and queue, the loop pops pods, the cycle decides and binds.

| room | subject |
|---|---|
| `cycle` | one pod's scheduling cycle, its binding cycle, preemption, reporting |
| `watching` | watch events become changes of state and queue |
| `plugin_runtime` | plugin instances, their services, timeouts and errors |
| `extenders` | HTTP services that take part in a decision |
| `election` | which replica schedules |
| `introspection` | what the scheduler shows of itself |
| `metrics`, `serving` | numbers, and the HTTPS endpoints |
| `reload` | another configuration without a restart |
| `shadow` | decide beside another scheduler, and compare |

`wiring` builds it, `loop` runs it, `shutdown` ends it. Read `cycle/scheduling_cycle` first.
"""

from mooring.scheduler.loop import Scheduler
from mooring.scheduler.wiring import build_scheduler

__all__ = ["Scheduler", "build_scheduler"]
