"""Why pods are where they are: decided again, on a cluster that runs or on one in a file.

`recomputation` has the plugins and the state of a scheduler and carries out nothing; `outside_data` is what they read
of other systems. `pods`, `owners`, `nodes`, `pending` and `why_not` explain one thing each; `near_misses` finds the
node that lacks least, `proposals` what could be changed, `verification` decides again with each change. Results are
plain data; `mooring.explain` makes text of it.
"""

from mooring.simulator.outside_data import fetch_outside_data
from mooring.why.nodes import explain_node
from mooring.why.owners import explain_owner
from mooring.why.pending import explain_pending
from mooring.why.pods import recomputed
from mooring.why.recomputation import Recomputation
from mooring.why.why_not import why_not

__all__ = [
    "Recomputation",
    "explain_node",
    "explain_owner",
    "explain_pending",
    "fetch_outside_data",
    "recomputed",
    "why_not",
]
