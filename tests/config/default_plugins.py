"""Stand-ins for all of kube-scheduler's default plugins: the right name, points and arguments, and no rules.

With them the whole of a configuration can be compared with upstream, whichever plugins Mooring has already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec

from mooring.framework import Args, Meta, Plugin, Point
from mooring.framework.registry import Registry
from mooring.objects.core import NodeAffinity


class Part(msgspec.Struct, rename="camel", frozen=True):
    pass


Percent = Annotated[int, Meta(ge=0, le=100)]


class ResourceSpec(Part, frozen=True):
    name: str
    weight: Percent = 1


class ShapePoint(Part, frozen=True):
    utilization: Percent
    score: Annotated[int, Meta(ge=0, le=10)]


class Ratio(Part, frozen=True):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Part, frozen=True):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: Ratio | None = None


class Constraint(Part, frozen=True):
    max_skew: Annotated[int, Meta(gt=0)]
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]


class DefaultPreemptionArgs(Args):
    min_candidate_nodes_percentage: Percent = 10
    min_candidate_nodes_absolute: Annotated[int, Meta(ge=0)] = 100


class InterPodAffinityArgs(Args):
    hard_pod_affinity_weight: Percent = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Args):
    added_affinity: NodeAffinity | None = None


class NodeResourcesFitArgs(Args):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def mistakes(self) -> Iterable[tuple[str, str]]:
        ratio = self.scoring_strategy.requested_to_capacity_ratio
        shape = ratio.shape if ratio else ()
        for index in range(1, len(shape)):
            if shape[index].utilization <= shape[index - 1].utilization:
                yield (
                    f"scoringStrategy.requestedToCapacityRatio.shape[{index}].utilization",
                    "values must be sorted in increasing order",
                )


class NodeResourcesBalancedAllocationArgs(Args):
    resources: tuple[ResourceSpec, ...] = ()


class PodTopologySpreadArgs(Args):
    defaulting_type: Literal["", "System", "List"] = "System"
    default_constraints: tuple[Constraint, ...] = ()

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.defaulting_type == "System" and self.default_constraints:
            yield "defaultingType", "System goes without constraints"


class VolumeBindingArgs(Args):
    bind_timeout_seconds: Annotated[int, Meta(ge=0)] = 600
    shape: tuple[ShapePoint, ...] = ()


class DynamicResourcesArgs(Args):
    filter_timeout: timedelta = timedelta(seconds=10)
    binding_timeout: timedelta = timedelta(seconds=600)

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.filter_timeout < timedelta():
            yield "filterTimeout", "must be zero or positive"


class LabelArgs(Args):
    label_key: str = "score-by-label"
    keep_percent: Percent = 10


ENQUEUE, SORT, PRE_FILTER, FILTER = Point.PRE_ENQUEUE, Point.QUEUE_SORT, Point.PRE_FILTER, Point.FILTER
POST_FILTER, PRE_SCORE, SCORE, RESERVE = Point.POST_FILTER, Point.PRE_SCORE, Point.SCORE, Point.RESERVE
PRE_BIND, BIND = Point.PRE_BIND, Point.BIND

DEFAULTS: dict[str, tuple[Sequence[Point], type[Args] | None]] = {
    "SchedulingGates": ([ENQUEUE], None),
    "PrioritySort": ([SORT], None),
    "NodeUnschedulable": ([FILTER], None),
    "NodeName": ([FILTER], None),
    "TaintToleration": ([FILTER, PRE_SCORE, SCORE], None),
    "NodeAffinity": ([PRE_FILTER, FILTER, PRE_SCORE, SCORE], NodeAffinityArgs),
    "NodePorts": ([PRE_FILTER, FILTER], None),
    "NodeResourcesFit": ([PRE_FILTER, FILTER, PRE_SCORE, SCORE], NodeResourcesFitArgs),
    "VolumeRestrictions": ([PRE_FILTER, FILTER], None),
    "NodeVolumeLimits": ([PRE_FILTER, FILTER], None),
    "VolumeBinding": ([PRE_FILTER, FILTER, PRE_SCORE, SCORE, RESERVE, PRE_BIND], VolumeBindingArgs),
    "VolumeZone": ([PRE_FILTER, FILTER], None),
    "PodTopologySpread": ([PRE_FILTER, FILTER, PRE_SCORE, SCORE], PodTopologySpreadArgs),
    "InterPodAffinity": ([PRE_FILTER, FILTER, PRE_SCORE, SCORE], InterPodAffinityArgs),
    "DynamicResources": (
        [ENQUEUE, PRE_FILTER, FILTER, POST_FILTER, SCORE, RESERVE, PRE_BIND],
        DynamicResourcesArgs,
    ),
    "DefaultPreemption": ([ENQUEUE, POST_FILTER], DefaultPreemptionArgs),
    "NodeResourcesBalancedAllocation": ([PRE_SCORE, SCORE], NodeResourcesBalancedAllocationArgs),
    "ImageLocality": ([SCORE], None),
    "DefaultBinder": ([BIND], None),
    "NodeDeclaredFeatures": ([PRE_FILTER, FILTER], None),
}
SCORES_WITHOUT_PRE_SCORE = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeAffinity")


def a_plugin(name: str, points: Sequence[Point], args: type[Args] | None = None, **attributes: Any) -> type[Plugin]:
    """A plugin class with the methods of these points."""

    def one(self: Any, pod: Any) -> None: ...
    def two(self: Any, pod: Any, cycle: Any) -> None: ...
    def three(self: Any, pod: Any, node: Any, cycle: Any) -> None: ...
    async def awaited(self: Any, pod: Any, node: Any, cycle: Any) -> None: ...
    def with_args(self: Any, args: Any) -> None: ...

    shapes: dict[Point, Any] = {ENQUEUE: one, SORT: one, PRE_FILTER: two}
    shapes |= dict.fromkeys((PRE_BIND, BIND, Point.POST_BIND), awaited)
    methods = {point.methods[0]: shapes.get(point, three) for point in points}
    if args is not None:
        with_args.__annotations__ = {"args": args, "return": None}
        methods["__init__"] = with_args
    return type(name, (Plugin,), {"name": name, **methods, **attributes})


def a_registry(*extra: type[Plugin], without: Sequence[str] = ()) -> Registry:
    """All default plugins (but some), and more."""
    registry = Registry()
    for name, (points, args) in DEFAULTS.items():
        if name not in without:
            needs = name not in SCORES_WITHOUT_PRE_SCORE
            registry.add(a_plugin(name, points, args, score_needs_pre_score=needs), "default")
    for cls in extra:
        registry.add(cls, "test")
    return registry


SCORE_BY_LABEL = a_plugin("ScoreByLabel", [SCORE], LabelArgs)
SAMPLE = a_plugin("sample2", [FILTER, PRE_SCORE])
OTHER_SORT = a_plugin("OtherSort", [SORT])
EVERYTHING = a_registry(SCORE_BY_LABEL, SAMPLE, OTHER_SORT)
