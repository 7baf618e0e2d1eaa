"""Will this configuration work on that cluster? Each finding of a check names what to do about it.

`examine` runs all checks, in the order in which they depend on each other. Nothing here changes anything in a cluster.
"""

from mooring.doctor.examination import PlannedScheduler, examine
from mooring.doctor.findings import CheckStatus, Finding

__all__ = ["CheckStatus", "Finding", "PlannedScheduler", "examine"]
