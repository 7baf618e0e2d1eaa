"""Shadow mode: decide for the pods of another scheduler without touching them, and report where we agree and differ.

`judging` compares one action of the other scheduler with one of our decisions; `shadow` decides when, and on which
cluster state; `wiring` builds the ordinary scheduler with an `executor` that touches nothing; `summary` and `report`
show the result.
"""

from mooring.scheduler.shadow.comparison import Comparison, Moment, Subject
from mooring.scheduler.shadow.judging import Cause, Judgement, Result
from mooring.scheduler.shadow.read_only import ReadOnlyClient
from mooring.scheduler.shadow.report import JsonLines
from mooring.scheduler.shadow.shadow import Shadow
from mooring.scheduler.shadow.summary import Summary
from mooring.scheduler.shadow.wiring import ShadowRun, build_shadow, deciding_for

__all__ = [
    "Cause",
    "Comparison",
    "JsonLines",
    "Judgement",
    "Moment",
    "ReadOnlyClient",
    "Result",
    "Shadow",
    "ShadowRun",
    "Subject",
    "Summary",
    "build_shadow",
    "deciding_for",
]
