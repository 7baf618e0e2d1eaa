"""Will this configuration work on that cluster? Each question is a check; each answer says what to do about it.

`examine` asks them all, in the order in which they depend on each other. Nothing here changes anything in a cluster.
"""

from mooring.doctor.examination import Plan, examine
from mooring.doctor.findings import Finding, Verdict

__all__ = ["Finding", "Plan", "Verdict", "examine"]
