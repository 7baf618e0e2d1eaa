"""A pod whose schedulerName no scheduler here serves: with which one it would have a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.explain.plain_words import served_words, unserved_words
from mooring.framework import Pod
from mooring.why.changes import ProposedChange, with_spec
from mooring.why.pending import Served
from mooring.why.recomputation import Recomputation
from mooring.why.similar import similar
from mooring.why.verification import Verifier

MOST = 3
"""Profiles that are proposed."""


def unserved_miss(recomputation: Recomputation, pod: Pod, served: Served) -> dict[str, Any]:
    """As one of `near_misses`."""
    verifier = Verifier(recomputation, pod)
    found = [verifier.verified(change) for change in _changes(recomputation, pod, served)]
    return {
        "plugin": "",
        "reasons": [f"{unserved_words(pod.spec.scheduler_name)}; {served_words(served)}"],
        "code": "UnschedulableAndUnresolvable",
        "count": 0,
        "onlyThis": 0,
        "node": None,
        "missing": [],
        "changes": [each.document() for each in found if each is not None],
    }


def _changes(recomputation: Recomputation, pod: Pod, served: Served) -> Iterator[ProposedChange]:
    """A similar name first. The schedulerName of a pod cannot be changed."""
    here = [name for name in sorted(served) if name in recomputation.profiles_by_name]
    near = similar(pod.spec.scheduler_name, here)
    for name in [*near, *(each for each in here if each not in near)][:MOST]:
        yield ProposedChange(
            f"create the pod again with schedulerName {name}",
            pod=with_spec(pod, scheduler_name=name),
            manifest={"spec": {"schedulerName": name}},
        )
