"""How often we agreed and differed, and which plugins made the differences: as metrics, and as a summary in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from mooring.scheduler.metrics import PluginMetrics
from mooring.scheduler.shadow.comparison import Comparison, Moment, Subject
from mooring.scheduler.shadow.judging import Result

MOST_NAMED = 5

_WORDS = {
    Result.AGREE: "agree",
    Result.WORDS: "agree with another message",
    Result.SAMPLED: "may differ by sampling only",
    Result.DIFFER: "differ",
    Result.NOT_COMPARABLE: "not comparable",
}


class Summary:
    """Counts comparisons."""

    def __init__(self, metrics: PluginMetrics, profiles: Iterable[str], waiting: Callable[[], int]) -> None:
        self._waiting = waiting
        self._results: Counter[Result] = Counter()
        self._causes: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._turned = 0
        self._decisions = metrics.counter(
            "mooring_shadow_decisions_total",
            "Decisions of another scheduler compared with this scheduler's, by result.",
            *("profile", "subject", "result"),
        )
        self._differences = metrics.counter(
            "mooring_shadow_differences_total",
            "Differences by cause and plugin, including those that sampling may explain.",
            *("profile", "cause", "plugin"),
        )
        self._waiting_pods = metrics.gauge("mooring_shadow_waiting_pods", "Pods of the other scheduler that wait.")
        for profile in profiles:
            for subject in Subject:
                for result in Result:
                    # Created at the start: an alert must distinguish zero from absent.
                    self._decisions.inc(0, profile=profile, subject=subject.value, result=result.value)

    @property
    def total(self) -> int:
        return self._results.total()

    def look(self) -> None:
        """How many wait can be seen at any time; what is served is from the last look."""
        self._waiting_pods.set(self._waiting())

    def count(self, comparison: Comparison) -> None:
        judged = comparison.judgement
        self._results[judged.result] += 1
        self._turned += comparison.moment is Moment.BESIDE
        self._decisions.inc(profile=comparison.profile, subject=comparison.subject.value, result=judged.result.value)
        if judged.cause is not None:
            self._causes[f"{judged.plugin} ({judged.cause.value})" if judged.plugin else judged.cause.value] += 1
            self._differences.inc(profile=comparison.profile, cause=judged.cause.value, plugin=judged.plugin)
        if judged.result is Result.NOT_COMPARABLE:
            self._reasons[judged.why] += 1

    def lines(self) -> Iterator[str]:
        """A few lines for a terminal."""
        found = ", ".join(f"{self._results[result]} {words}" for result, words in _WORDS.items())
        yield f"Compared {self.total}: {found}; {self._waiting()} pods wait."
        if self._turned:
            yield f"  of those that agree, {self._turned} after reordering concurrent events"
        for what, counter in (("differences by", self._causes), ("not comparable:", self._reasons)):
            for name, count in counter.most_common(MOST_NAMED):
                yield f"  {what} {name}: {count}"
