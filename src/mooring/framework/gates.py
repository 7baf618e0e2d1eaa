"""Feature gates: which features are on. Injected where plugins are built, never global.

`--feature-gates` takes what kube-scheduler's takes, and refuses what would silently do nothing: an unknown gate, one
that is locked, and a gate of the scheduler's whose other side is not built here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.framework.gate_table import GATES, POD_GROUP_DEPENDENCIES

FLAG = "--feature-gates"
COMPONENT = "kube"
ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"

BUILT_BOTH_WAYS = frozenset(
    [
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "MatchLabelKeysInPodTopologySpread",
        "NodeDeclaredFeatures",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
    ]
)
"""The gates that plugins read and that can be changed."""

OF_POD_GROUPS = frozenset(POD_GROUP_DEPENDENCIES)
"""The gates of pod groups: scheduler, embedded API server and simulated controllers have both sides."""

BUILT_ONE_WAY = frozenset(
    [
        "ClientsAllowCARotation",
        "ClientsAllowCBOR",
        "ClientsPreferCBOR",
        "CoordinatedLeaderElection",
        "DRADeviceTaintRules",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "InPlacePodLevelResourcesVerticalScaling",
        "NativeHistograms",
        "NominatedNodeNameForExpectation",
        "PodLevelResources",
        "SchedulerAsyncPreemption",
        "SchedulerPopFromBackoffQ",
        "VolumeLimitScaling",
    ]
)
"""The gates that change a scheduler, of which only the default is built here."""

INSIDE_KUBE_SCHEDULER = frozenset(
    [
        "AtomicFIFO",
        "ClientsAllowTLSCacheGC",
        "ComponentFlagz",
        "ComponentStatusz",
        "ContextualLogging",
        "InOrderInformersBatchProcess",
        "InformerResourceVersion",
        "LoggingAlphaOptions",
        "LoggingBetaOptions",
        "OpportunisticBatching",
        "SchedulerAsyncAPICalls",
        "UnlockWhileProcessingFIFO",
        "WatchListClient",
    ]
)
"""The gates about how kube-scheduler is made: nothing that Mooring does depends on them."""

_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


class FeatureGates:
    """Which features are on: the defaults, and what was set."""

    __slots__ = ("_on",)

    def __init__(self, changed: Mapping[str, bool] | None = None) -> None:
        self._on = {gate.name: gate.default for gate in GATES.values()} | dict(changed or {})

    def changed(self) -> dict[str, bool]:
        """Those that are not as they are by default."""
        return {name: on for name, on in self._on.items() if on != GATES[name].default}

    def enabled(self) -> frozenset[str]:
        """The names of those that are on."""
        return frozenset(name for name, on in self._on.items() if on)

    def on(self, gate: str) -> bool:
        """Whether the gate is on. An unknown gate is a programming error, so it raises."""
        return self._on[gate]


@dataclass(frozen=True, slots=True)
class ReadGates:
    """What a command line sets, and what the operator should know about it."""

    gates: FeatureGates
    warnings: tuple[Problem, ...] = ()


def read_gates(texts: Iterable[str]) -> ReadGates:
    """The gates of one or more `--feature-gates=Name=true,kube:Other=false`; the last value of a gate counts.

    Raises OperatorMistake with everything that is wrong.
    """
    problems: list[Problem] = []
    requested: dict[str, bool] = {}
    for part in ",".join(texts).split(","):
        if part := part.strip():
            _read_one(part, requested, problems)
    changed = _of_all(requested) | {name: value for name, value in requested.items() if name in GATES}
    warnings = []
    for name, value in changed.items():
        gate = GATES[name]
        where = f"{FLAG} {name}" if name in requested else f"{FLAG} {_all_of(name)} ({name})"
        if gate.locked and value is not gate.default:
            message = f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(gate.default)}"
            problems.append(Problem(where, message))
        elif name in BUILT_ONE_WAY and value is not gate.default:
            message = f"switching it {_word(value)} is not built: Mooring schedules with it {_word(not value)} only"
            problems.append(Problem(where, message))
        elif name in requested and (warning := _warning(name, value)):
            warnings.append(Problem(where, warning))
    gates = FeatureGates(changed)
    problems.extend(_without_what_they_need(gates))
    if problems:
        raise OperatorMistake.found_in(FLAG, problems)
    return ReadGates(gates, tuple(warnings))


def _without_what_they_need(gates: FeatureGates) -> Iterator[Problem]:
    for name, needed in POD_GROUP_DEPENDENCIES.items():
        missing = [each for each in needed if not gates.on(each)]
        if gates.on(name) and missing:
            message = f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"
            yield Problem(f"{FLAG} {name}", message)


def _read_one(part: str, requested: dict[str, bool], problems: list[Problem]) -> None:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    component, colon, bare = name.partition(":")
    if colon:
        name = bare
        if component != COMPONENT:
            problems.append(Problem(f"{FLAG} {part}", f'there is no component "{component}" here, only {COMPONENT}'))
            return
    if name not in GATES and name not in (ALL_ALPHA, ALL_BETA):
        hint = did_you_mean(name, GATES)
        problems.append(Problem(f"{FLAG} {part}", f"unrecognized feature gate: {name}.{hint}"))
    elif not equals:
        problems.append(Problem(f"{FLAG} {part}", f"missing bool value for {name}: write {name}=true or {name}=false"))
    elif value not in (*_TRUE, *_FALSE):
        problems.append(Problem(f"{FLAG} {part}", f'must be true or false, got "{value}"'))
    else:
        requested[name] = value in _TRUE


def _of_all(requested: Mapping[str, bool]) -> dict[str, bool]:
    """What AllAlpha and AllBeta set of the gates that are not named themselves."""
    stages = {stage: requested[name] for name, stage in ((ALL_ALPHA, "ALPHA"), (ALL_BETA, "BETA")) if name in requested}
    return {gate.name: stages[gate.stage] for gate in GATES.values() if gate.stage in stages and not gate.locked}


def _all_of(name: str) -> str:
    return ALL_ALPHA if GATES[name].stage == "ALPHA" else ALL_BETA


def _warning(name: str, value: bool) -> str | None:
    gate = GATES[name]
    if name not in BUILT_BOTH_WAYS | OF_POD_GROUPS | BUILT_ONE_WAY | INSIDE_KUBE_SCHEDULER and not gate.locked:
        return "concerns the API server, controllers or kubelets: it changes nothing in a scheduler"
    if name in INSIDE_KUBE_SCHEDULER and value is not gate.default:
        return "is about how kube-scheduler is made inside: it changes nothing here"
    if gate.stage in ("GA", "DEPRECATED"):
        return f"setting {'GA' if gate.stage == 'GA' else 'deprecated'} feature gate; a future release will not know it"
    return None


def _word(value: bool) -> str:
    return "on" if value else "off"


def _go(value: bool) -> str:
    return "true" if value else "false"
