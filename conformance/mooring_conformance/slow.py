"""Looking for pods that are slow to decide: hostile cases, measured in CPU seconds and changed towards slower ones.

The measure is a decision on a fresh state, as the first attempt of a new pod is: nothing of it is cached. Where the
real kube-scheduler is at hand, its CPU seconds for the same case stand beside ours, and the decisions are compared.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

import msgspec

from mooring.engine import Profile, decide
from mooring.engine.stopwatch import Run, Stopwatch
from mooring_conformance.cases import Case, Recorded
from mooring_conformance.comparing import Difference
from mooring_conformance.generate.dice import Dice, Json
from mooring_conformance.generate.hostile import SHAPES, Recipe, hostile_case
from mooring_conformance.recorder import Recorder
from mooring_conformance.running import Options, Way, run_case
from mooring_conformance.situation import Situation

SLOW_SECONDS = 1.0
"""A decision that takes less CPU time than this is no harm, whatever kube-scheduler takes."""
SLOW_RATIO = 10
"""So many times kube-scheduler's CPU time is too much."""
MOST_SECONDS = 60
"""A decision is given up after so much CPU time."""
SURVIVORS = 6
"""The slowest recipes so far, which are changed further."""
NODES = (50, 200, 500)
MOST_SHRINKS = 40


@dataclass(frozen=True)
class Measured:
    """What a recipe's decision cost."""

    recipe: Recipe
    seconds: float
    """CPU time of ours."""
    plugin: str
    """The plugin that took most of it, "" where it was not a plugin."""
    theirs: float | None = None
    """CPU time of kube-scheduler, where it decided too."""
    differences: tuple[Difference, ...] = ()

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.seconds / max(self.theirs, 0.001)

    @property
    def is_slow(self) -> bool:
        return self.seconds > SLOW_SECONDS and (self.ratio is None or self.ratio > SLOW_RATIO)

    @property
    def score(self) -> float:
        """What the search climbs: our seconds, and where kube-scheduler takes long too, fewer."""
        return self.seconds if self.ratio is None else self.seconds * min(1.0, self.ratio / SLOW_RATIO)


class _TooLong(BaseException):
    """No `Exception`: the engine takes those for a plugin's."""


def measure(recipe: Recipe, recorder: Recorder | None = None) -> Measured:
    """Decide the recipe's case once, on a fresh state."""
    document = hostile_case(recipe)
    case = msgspec.json.decode(msgspec.json.encode(document), type=Case)
    situation = Situation(case)
    profile = Profile(situation.configuration.scheduler_name, situation.points)
    watch = Stopwatch(time.process_time)
    try:
        with _limited(MOST_SECONDS):
            decide(profile, situation.pod, situation.state, watch=watch)
    except _TooLong:
        return Measured(recipe, MOST_SECONDS, _slowest(watch.runs))
    measured = Measured(recipe, time.process_time() - watch.began, _slowest(watch.runs))
    if recorder is None:
        return measured
    expect = recorder.record(document)
    theirs = expect.pop("seconds", None)
    differing = run_case(Recorded(case, expect), Options((Way.VECTOR,)))
    return replace(measured, theirs=theirs, differences=tuple(each for one in differing for each in one.differences))


def search(
    seed: str,
    count: int,
    measured: Callable[[Recipe], Measured],
    shapes: Mapping[str, int] | None = None,
) -> Iterator[Measured]:
    """So many recipes: every shape by itself first, then changes of the slowest ones so far.

    `shapes`: which, and at most how much of each.
    """
    most = shapes or {name: shape.most for name, shape in SHAPES.items()}
    dice = Dice(f"slow:{seed}")
    survivors: list[Measured] = []
    tried: set[str] = set()
    alone = iter(sorted(most, key=lambda name: (dice.random(), name)))
    for number in range(count):
        first = next(alone, None)
        if first is not None:
            recipe = Recipe({first: most[first]}, seed=seed)
        elif survivors and dice.chance(0.8):
            recipe = _changed(dice, dice.choice(survivors).recipe, most)
        else:
            recipe = Recipe(_some(dice, most), nodes=dice.choice(NODES), seed=f"{seed}.{number}")
        if str(recipe) in tried:
            continue
        tried.add(str(recipe))
        found = measured(recipe)
        survivors = sorted([*survivors, found], key=lambda each: -each.score)[:SURVIVORS]
        yield found


def shrunk(
    found: Measured, measured: Callable[[Recipe], Measured], is_interesting: Callable[[Measured], bool]
) -> Measured:
    """The smallest recipe that was found to be as interesting: with fewer shapes, less of each and fewer nodes."""
    left = MOST_SHRINKS
    progress = True
    while progress and left > 0:
        progress = False
        for smaller in _smaller(found.recipe):
            left -= 1
            candidate = measured(smaller)
            if is_interesting(candidate):
                found, progress = candidate, True
                break
            if left <= 0:
                break
    return found


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    amounts = recipe.amounts
    if len(amounts) > 1:
        for shape in amounts:
            yield replace(recipe, amounts={name: amount for name, amount in amounts.items() if name != shape})
    for shape, amount in amounts.items():
        if amount > 1:
            yield replace(recipe, amounts={**amounts, shape: amount // 2})
    if recipe.nodes > 10:
        yield replace(recipe, nodes=recipe.nodes // 2)
    if recipe.running > 10:
        yield replace(recipe, running=recipe.running // 2)


def _some(dice: Dice, most: Mapping[str, int]) -> dict[str, int]:
    chosen = dice.sample(sorted(most), min(len(most), dice.choice([1, 2, 2, 3, 4])))
    return {name: max(1, round(most[name] * dice.choice([0.1, 0.3, 1]))) for name in chosen}


def _changed(dice: Dice, recipe: Recipe, most: Mapping[str, int]) -> Recipe:
    amounts = dict(recipe.amounts)
    match dice.choice(["more", "more", "add", "add", "drop", "nodes", "running"]):
        case "more":
            name = dice.choice(sorted(amounts))
            amounts[name] = min(most[name], amounts[name] * 2)
        case "add":
            name = dice.choice(sorted(most))
            amounts[name] = max(1, round(most[name] * dice.choice([0.1, 0.3, 1])))
        case "drop" if len(amounts) > 1:
            del amounts[dice.choice(sorted(amounts))]
        case "nodes":
            return replace(recipe, nodes=dice.choice(NODES))
        case "running":
            return replace(recipe, running=dice.choice([100, 400, 2000]))
    return replace(recipe, amounts=amounts)


def as_recorded(found: Measured, recorder: Recorder) -> Json:
    """The case and kube-scheduler's decision, as `mooring conformance FILE` reads them."""
    case = hostile_case(found.recipe)
    expect = recorder.record(case)
    expect.pop("seconds", None)
    return {"case": case, "expect": expect}


def _slowest(runs: list[Run]) -> str:
    took: dict[str, float] = {}
    for run in runs:
        for plugin, seconds in run.seconds_by_plugin():
            took[plugin] = took.get(plugin, 0.0) + seconds
    return max(took, key=lambda plugin: took[plugin], default="")


@contextmanager
def _limited(cpu_seconds: float) -> Iterator[None]:
    """Raises `_TooLong` inside after so much CPU time; only a process's main thread can be limited."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_: int, __: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
