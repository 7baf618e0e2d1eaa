"""Decides each recorded decision again, on the state that was recorded.

What a decision of the other configuration would have caused is not followed: the next one is decided on the recorded
state again. So each difference is one of the configurations, and not of what came before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from mooring.base.errors import MooringError
from mooring.config import Configuration, load_configuration
from mooring.engine import Decision, DecisionCache, Profile, decide, reserve
from mooring.engine.evidence import EvidenceRecord
from mooring.engine.reservation import unreserve
from mooring.framework import FeatureGates, Pod
from mooring.framework.registry import Registry
from mooring.recording import RecordedDecision, Recording, rows
from mooring.recording.encoding import outcome_of
from mooring.recording.file_format import damaged, rows_of
from mooring.replay.replayed_state import ReplayedState
from mooring.scheduler.loop import Scheduler
from mooring.scheduler.plugin_runtime.assembly import assemble
from mooring.scheduler.shadow.wiring import SilentReporter
from mooring.scheduler.wiring import Core, build_core, cluster_executor, complete
from mooring.simulator.move_explainer import explained_move
from mooring.simulator.moves import Move
from mooring.simulator.simulated_client import SimulatedClient
from mooring.simulator.virtual_time import SimulatedClock, VirtualTimeLoop

YIELD_EVERY = 16
"""Decisions between two moments at which Ctrl-C ends it."""
HELD, EXTENDED, LIMITED, UNKNOWN = (
    "no decision was made: the attempt was held",
    "extenders took part, and what they returned is not recorded",
    "a pod group was placed on a part of the nodes, and which is not recorded",
    "the pod is not in the recording",
)

Wanted = Callable[[RecordedDecision], bool]
Progress = Callable[[int], None]


class ReplayedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded decision beside the one that another configuration takes."""

    index: int
    time: float
    pod: str
    was: str | None
    """The recorded node."""
    was_kind: str
    was_message: str = ""
    would: str | None = None
    would_kind: str = ""
    would_message: str = ""
    differs: bool = False
    skipped: str = ""
    """Why it was not decided again."""
    move: Move | None = None
    """What made the difference."""

    def explained(self) -> str:
        """In a sentence."""
        return self.move.explained() if self.move is not None else ""


class ReplayResult(msgspec.Struct):
    """What was decided again."""

    decisions: int = 0
    same: int = 0
    differing: list[ReplayedDecision] = []
    skipped: dict[str, int] = {}
    notes: list[str] = []

    def add(self, replayed: ReplayedDecision) -> None:
        self.decisions += 1
        if replayed.skipped:
            self.skipped[replayed.skipped] = self.skipped.get(replayed.skipped, 0) + 1
        elif replayed.differs:
            self.differing.append(replayed)
        else:
            self.same += 1


def replay(
    recording: Recording,
    configuration: Configuration | None,
    registry: Registry,
    *,
    gates: FeatureGates | None = None,
    wanted: Wanted = lambda _decision: True,
    progress: Progress = lambda _count: None,
) -> ReplayResult:
    """Decide the wanted decisions again. Without a configuration or gates: by those that were recorded."""
    result = ReplayResult()
    again = Replay(recording, configuration, registry, gates=gates, wanted=wanted)
    found: list[ReplayedDecision] = []
    again.run(progress, found)
    for replayed in found:
        result.add(replayed)
    result.notes = [*recording.notes, *again.notes]
    return result


class Replay:
    """One pass over a recording."""

    def __init__(
        self,
        recording: Recording,
        configuration: Configuration | None,
        registry: Registry,
        *,
        gates: FeatureGates | None = None,
        wanted: Wanted = lambda _decision: True,
    ) -> None:
        self.notes: list[str] = []
        self._recording = recording
        self._configuration = configuration
        self._registry = registry
        self._gates = gates or recording.gates
        self._wanted = wanted

    def run(self, progress: Progress, found: list[ReplayedDecision]) -> None:
        """Add all wanted decisions to `found`, in order. Ctrl-C raises KeyboardInterrupt; what was found stays."""
        decisions = iter(self._recording.decisions)
        history = self._recording.history()
        for header, segment in _segments(history):
            if not self._is_any_wanted(header.segment):
                for row in segment:
                    if isinstance(row, rows.Decided | rows.Held):
                        next(decisions, None)
                continue
            loop = VirtualTimeLoop()
            with asyncio.Runner(loop_factory=lambda loop=loop: loop) as runner:  # type: ignore[misc]
                pass_ = _SegmentReplay(self, loop, header)
                runner.run(pass_.run(segment, decisions, found, progress))

    def _is_any_wanted(self, segment: int) -> bool:
        offsets = [offset for offset, header in self._recording.headers.items() if header.segment == segment]
        return any(each.segment in offsets and self._wanted(each) for each in self._recording.decisions)

    def load(self, document: dict[str, Any]) -> Configuration | None:
        """The recorded configuration; None, and a note, if it cannot be loaded here."""
        try:
            return load_configuration(
                msgspec.json.encode(document).decode(),
                source="the recorded configuration",
                registry=self._registry,
                gates=self._gates,
            ).configuration
        except MooringError as error:
            self.note(f"the recorded configuration cannot be loaded, so no plugin is named for a difference: {error}")
            if self._configuration is None:
                raise
            return None

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @property
    def path(self) -> Path | str:
        return self._recording.path

    @property
    def configuration(self) -> Configuration | None:
        return self._configuration

    @property
    def registry(self) -> Registry:
        return self._registry

    @property
    def gates(self) -> FeatureGates:
        return self._gates

    @property
    def wanted(self) -> Wanted:
        return self._wanted


class _SegmentReplay:
    """The scheduler's parts, built for one segment."""

    def __init__(self, replay: Replay, loop: VirtualTimeLoop, header: rows.SegmentHeader) -> None:
        self._replay = replay
        self._loop = loop
        self._header = header
        self._clock = SimulatedClock(loop, header.time)
        self._core: Core
        self._scheduler: Scheduler
        self._theirs: dict[str, Profile] = {}
        """The profiles of the recorded configuration."""
        self._state: ReplayedState
        self._cache, self._their_cache = DecisionCache(), DecisionCache()
        self._reserved: dict[str, tuple[Profile, Decision]] = {}

    async def run(
        self,
        segment: Iterator[rows.AnyRow],
        decisions: Iterator[RecordedDecision],
        found: list[ReplayedDecision],
        progress: Progress,
    ) -> None:
        await self._build(self._header.configuration, self._header.profiles)
        try:
            count = 0
            for row in segment:
                self._let_time_pass(row.time)
                if isinstance(row, rows.Decided | rows.Held):
                    recorded = next(decisions, None)
                    if recorded is None:
                        raise damaged(self._replay.path, "it has decisions that do not begin as rows of decisions do")
                    if self._replay.wanted(recorded):
                        found.append(self._again(recorded, row))
                        count += 1
                        progress(len(found))
                        if count % YIELD_EVERY == 0:
                            await asyncio.sleep(0)
                    self._apply(row)
                elif isinstance(row, rows.Configured):
                    self._adopt(row)
                else:
                    if isinstance(row, rows.Forgotten):
                        await self._unreserve(row.uid)
                    elif isinstance(row, rows.Deleted):
                        self._reserved.pop(row.uid, None)
                    self._apply(row)
        finally:
            await self._scheduler.shutdown.run()

    def _apply(self, row: rows.AnyRow) -> None:
        with rows_of(self._replay.path):
            self._state.apply(row)

    async def _build(self, document: dict[str, Any], profiles: list[str]) -> None:
        recorded = self._replay.load(document)
        chosen = self._replay.configuration or recorded
        assert chosen is not None
        client = SimulatedClient(self._clock)
        names = [profile.scheduler_name for profile in chosen.profiles]
        self._core = core = build_core(
            client,
            chosen,
            self._replay.registry,
            clock=self._clock,
            reporter=SilentReporter(client, names),
            gates=self._replay.gates,
            attempt_timeout_seconds=0,
        )
        self._scheduler = complete(core, cluster_executor(core), is_explained=False)
        self._state = ReplayedState(core, profiles)
        instances = dict(core.assembly.current.instances)
        if recorded is not None and self._replay.configuration is not None:
            theirs = assemble(recorded, self._replay.registry, core.services, kept=instances)
            self._theirs = theirs.profiles
            instances |= theirs.instances
        self._state.follow(core)
        unknown = {kind.KIND.name for kinds in core.assembly.current.kinds.values() for kind in kinds} - set(
            self._header.kinds
        )
        if unknown and self._header.kinds:
            self._replay.note(f"not recorded, because no plugin read it then: {', '.join(sorted(unknown))}")
        for instance in instances.values():
            await self._scheduler.lifecycle.start(instance)

    def _adopt(self, row: rows.Configured) -> None:
        """The scheduler was reloaded."""
        self._state.profiles = row.profiles
        if row.configuration == self._header.configuration:
            return
        recorded = self._replay.load(row.configuration)
        if recorded is None:
            return
        core = self._core
        built = assemble(recorded, self._replay.registry, core.services, kept=core.assembly.current.instances)
        if self._replay.configuration is None:
            core.assembly.replace(built)
            self._state.follow(core)
        else:
            self._theirs = built.profiles

    def _let_time_pass(self, time: float) -> None:
        if (passed := time - self._clock.now()) > 0:
            self._loop.advance(passed)

    def _again(self, recorded: RecordedDecision, row: rows.Decided | rows.Held) -> ReplayedDecision:
        was: dict[str, Any] = {
            "index": recorded.index,
            "time": recorded.time,
            "pod": recorded.pod,
            "was": recorded.node,
            "was_kind": recorded.kind,
            "was_message": recorded.message,
        }
        if isinstance(row, rows.Held):
            return ReplayedDecision(**was, skipped=HELD)
        if row.is_extended:
            return ReplayedDecision(**was, skipped=EXTENDED)
        if row.is_limited:
            return ReplayedDecision(**was, skipped=LIMITED)
        evidence = row.evidence
        with rows_of(self._replay.path):
            was_decided = evidence.node, outcome_of(evidence), _plan(evidence)
        pod = self._state.waiting.get(evidence.uid)
        if pod is None:
            return ReplayedDecision(**was, skipped=UNKNOWN)
        profiles = self._core.assembly.current.profiles
        profile = profiles.get(evidence.profile)
        if profile is None:
            profile = next(iter(profiles.values()))
            self._replay.note(f"the configuration has no profile {evidence.profile}: {profile.name} decides instead")
        decision = self._decide(profile, pod, evidence, self._cache)
        would = decision.record()
        kind = outcome_of(would)
        differs = (decision.node, kind, _plan(would)) != was_decided
        move = self._explained(decision, evidence, recorded) if differs else None
        if decision.node is not None and decision.node == evidence.node and reserve(profile, decision) is None:
            self._reserved[evidence.uid] = profile, decision
        return ReplayedDecision(
            **was,
            would=decision.node,
            would_kind=kind,
            would_message=decision.message,
            differs=differs,
            move=move,
        )

    def _decide(self, profile: Profile, pod: Pod, was: EvidenceRecord, cache: DecisionCache) -> Decision:
        return decide(profile, pod, self._state.state, attempt=was.attempt, seed=was.seed, start=was.start, cache=cache)

    def _explained(self, decision: Decision, was: EvidenceRecord, recorded: RecordedDecision) -> Move | None:
        if (profile := self._theirs.get(was.profile)) is None:
            return None
        theirs = self._decide(profile, decision.pod, was, self._their_cache)
        return explained_move(decision, theirs, recorded.node, recorded.time)

    async def _unreserve(self, uid: str) -> None:
        if (reserved := self._reserved.pop(uid, None)) is not None:
            await unreserve(*reserved)


def _plan(evidence: EvidenceRecord) -> Any:
    plan = (evidence.room or {}).get("plan")
    return None if plan is None else (plan.get("nominate"), tuple(plan.get("evict", ())))


def _segments(
    history: Iterator[rows.SegmentHeader | rows.AnyRow],
) -> Iterator[tuple[rows.SegmentHeader, Iterator[rows.AnyRow]]]:
    """Each header with the rows behind it; a segment is read to its end before the next."""
    waiting = next(history, None)
    while isinstance(waiting, rows.SegmentHeader):
        header = waiting
        behind: list[rows.SegmentHeader] = []

        def segment(behind: list[rows.SegmentHeader] = behind) -> Iterator[rows.AnyRow]:
            for row in history:
                if isinstance(row, rows.SegmentHeader):
                    behind.append(row)
                    return
                yield row

        reading = segment()
        yield header, reading
        for _ in reading:
            pass
        waiting = behind[0] if behind else None
