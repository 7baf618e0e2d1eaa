"""One comparison: pod, action of the other scheduler, judgement, and the view of the cluster that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mooring.base.clock import timestamp
from mooring.framework import Plan
from mooring.scheduler.shadow.judging import Judgement, Result


class Subject(StrEnum):
    """The action of the other scheduler."""

    BINDING = "binding"
    REFUSAL = "refusal"
    PREEMPTION = "preemption"


class Moment(StrEnum):
    """On which view of the cluster the judgement rests."""

    THEN = "then"
    """As it was just before the watch showed their action."""
    EARLIER = "earlier"
    """As it was when we decided about the pod ourselves."""
    BESIDE = "beside"
    """With concurrent events in the order of the pods' turns, and deletions after them."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """Our own last decision about a pending pod."""

    at: float
    attempt: int
    node: str | None
    best: frozenset[str] = frozenset()
    """The nodes that were as good as ours; the first of them where there are very many."""
    message: str = ""
    plan: Plan | None = None
    bindings: int = 0
    """How many bindings had been seen by then."""

    def as_json(self) -> dict[str, Any]:
        decided = {"node": self.node} if self.node is not None else {"message": self.message}
        return {"time": timestamp(self.at), "attempt": self.attempt, **decided}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One action of theirs, compared."""

    at: float
    pod: str
    uid: str
    profile: str
    subject: Subject
    theirs: Mapping[str, Any]
    """Their node, message or nominated node."""
    judgement: Judgement
    moment: Moment = Moment.THEN
    ours: Mapping[str, Any] = field(default_factory=dict)
    """The evidence of our decision, where one was taken."""
    earlier: Earlier | None = None

    @property
    def result(self) -> Result:
        return self.judgement.result

    def in_one_line(self) -> str:
        """For a terminal."""
        judged = self.judgement
        if self.subject is Subject.BINDING:
            what = f"on {self.theirs['node']}"
        elif self.subject is Subject.PREEMPTION:
            what = f"nominated to {self.theirs['nominated']}"
        else:
            what = "refused"
        how = {
            Moment.THEN: "",
            Moment.EARLIER: " (as the cluster was when the pod came)",
            Moment.BESIDE: " (with what happened beside it put in order)",
        }[self.moment]
        return f"{judged.result.value.replace('_', ' '):<14}  {self.pod}  {what}: {judged.why}{how}"

    def as_json(self) -> dict[str, Any]:
        """Everything, for the report."""
        judged = self.judgement
        document: dict[str, Any] = {
            "time": timestamp(self.at),
            "pod": self.pod,
            "uid": self.uid,
            "profile": self.profile,
            "subject": self.subject.value,
            "result": judged.result.value,
            "why": judged.why,
            "theirs": dict(self.theirs),
        }
        if judged.cause is not None:
            document["cause"] = judged.cause.value
        if judged.plugin:
            document["plugin"] = judged.plugin
        if judged.evidence:
            document["evidence"] = dict(judged.evidence)
        if self.moment is not Moment.THEN:
            document["moment"] = self.moment.value
        if self.ours:
            document["ours"] = dict(self.ours)
        if self.earlier is not None:
            document["earlier"] = self.earlier.as_json()
        return document
