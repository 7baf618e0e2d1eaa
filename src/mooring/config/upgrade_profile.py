"""What old versions called otherwise in a profile: weights, plugins that are gone, arguments that moved.

Each rule is a function of a profile; `V1BETA1_ONLY` and `LIMITS_AND_SPREAD` list them in the order they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mooring.base.documents import Tree
from mooring.config.defaults import DEFAULT_PLUGINS, REFUSED_IN_V1
from mooring.config.fields import Fields
from mooring.config.problems import Problems
from mooring.config.profile_edit import EVERY, ProfileEdit
from mooring.framework.registry import Registry

Rule = Callable[[ProfileEdit, Problems], None]

_OLD_WEIGHTS = ("TaintToleration", "NodeAffinity", "InterPodAffinity")
"""Had weight 1 by default before v1beta3."""

LEAST, MOST, RATIO = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "RequestedToCapacityRatio"
_STRATEGIES = {LEAST: "LeastAllocated", MOST: "MostAllocated", RATIO: "RequestedToCapacityRatio"}
FIT = "NodeResourcesFit"

_V1BETA1_DEFAULTS: Mapping[str, Sequence[str]] = {
    "queueSort": ("PrioritySort",),
    "preFilter": (FIT, "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding"),
    "filter": (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        FIT,
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ),
    "postFilter": ("DefaultPreemption",),
    "preScore": ("InterPodAffinity", "PodTopologySpread", "TaintToleration"),
    "score": (
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "InterPodAffinity",
        LEAST,
        "NodeAffinity",
        "PodTopologySpread",
        "TaintToleration",
    ),
    "reserve": ("VolumeBinding",),
    "preBind": ("VolumeBinding",),
    "bind": ("DefaultBinder",),
}


def keep_old_weights(version: Tree, profiles: Sequence[ProfileEdit], registry: Registry, problems: Problems) -> None:
    """The defaults of before v1beta3, where a profile leaves them as they were."""
    kept: dict[str, None] = {}
    for profile in profiles:
        for name in _OLD_WEIGHTS:
            if (
                name in registry
                and not profile.is_disabled("score", name)
                and profile.find("score", "enabled", name) is None
            ):
                at = profile.plugins.get("score") or profile.tree
                profile.add("score", "enabled", {"name": name, "weight": 1}, at)
                kept[name] = None
    if kept:
        since = ", ".join(f"{name} {DEFAULT_PLUGINS[name]}" for name in kept)
        problems.warn(version, f"weight 1 is kept for {', '.join(kept)}; the defaults of v1 are {since}")


def _enabled_again(profile: ProfileEdit, problems: Problems) -> None:
    """v1beta1 refused to enable a default that was not disabled first; since then it replaces the default."""
    for point, names in _V1BETA1_DEFAULTS.items():
        for name in names:
            again = profile.find(point, "enabled", name)
            if again is not None and not profile.is_disabled(point, name):
                problems.warn(again, f'"{name}" is on by default at {point}; v1beta1 refused this, v1 replaces it')


def _allocation_score(profile: ProfileEdit, problems: Problems) -> None:
    """Three score plugins have become strategies of NodeResourcesFit, of which a profile has one."""
    active = _active_allocation(profile)
    fit = profile.find("score", "enabled", FIT)
    if len(active) > 1 or (active and fit is not None):
        names = ", ".join([*active, *([FIT] if fit else [])])
        at = next((entry for entry in (*active.values(), fit) if entry is not None), profile.tree)
        problems.error(
            at, f"{names} score together, which v1 cannot express: NodeResourcesFit has one strategy. Keep one."
        )
        active = {}
    for name, old in active.items():
        _use_strategy(profile, name, old, problems)
    if not active and fit is None and not profile.find("score", "disabled", EVERY):
        off = profile.find("score", "disabled", LEAST)
        if off is not None:
            profile.add("score", "disabled", {"name": FIT}, off)
    for name in _STRATEGIES:
        unused = profile.args(name)
        if unused is not None and name not in active:
            problems.warn(unused, f"is dropped: {name} does not score in this profile")
        profile.drop_args(name)
        profile.remove("score", "enabled", name)
        profile.remove("score", "disabled", name)


def _active_allocation(profile: ProfileEdit) -> dict[str, Tree | None]:
    """Those of the three that score, with their entries; the default one may have none."""
    active = {name: entry for name in _STRATEGIES if (entry := profile.find("score", "enabled", name)) is not None}
    if LEAST not in active and not profile.is_disabled("score", LEAST):
        return {LEAST: None, **active}
    return dict(active)


def _use_strategy(profile: ProfileEdit, name: str, old: Tree | None, problems: Problems) -> None:
    if old is not None:
        weight = old.get("weight")
        profile.replace("score", old, {"name": FIT, "weight": weight if weight is not None else 1})
    args = profile.args(name)
    if name == LEAST and args is None:
        return
    like = args or old or profile.tree
    profile.set_args(FIT, "scoringStrategy", _strategy(name, args, problems), like)


def _strategy(name: str, args: Tree | None, problems: Problems) -> dict[str, Any]:
    strategy: dict[str, Any] = {"type": _STRATEGIES[name]}
    if args is None:
        return strategy
    fields = Fields(args, problems)
    fields.take("apiVersion"), fields.take("kind")
    resources = fields.take("resources")
    if resources is not None and resources.items and name != RATIO:
        # Weight 0 meant "not counted" to these two; v1 would read it as 1.
        counted = [item for item in resources.items if (weight := item.get("weight")) is None or weight.value != 0]
        if not counted:
            problems.error(resources, "every weight is 0, so nothing would be counted; v1 cannot express that")
        resources = Tree(list(counted), resources.path, resources.line)
    if resources is not None:
        strategy["resources"] = resources
    if name == RATIO and (shape := fields.take("shape")) is not None:
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    fields.finish()
    return strategy


def _node_label(profile: ProfileEdit, problems: Problems) -> None:
    """NodeLabel's required labels become NodeAffinity's addedAffinity; its preferences have no equivalent."""
    filtering = profile.find("filter", "enabled", "NodeLabel")
    scoring = profile.find("score", "enabled", "NodeLabel")
    args = profile.args("NodeLabel")
    if args is not None:
        fields = Fields(args, problems)
        fields.take("apiVersion"), fields.take("kind")
        present, absent = fields.items("presentLabels"), fields.items("absentLabels")
        preferences = [*fields.items("presentLabelsPreference"), *fields.items("absentLabelsPreference")]
        fields.finish()
        if scoring is not None and preferences:
            problems.error(
                preferences[0],
                "NodeLabel's preferences cannot be converted: they were normalised otherwise. Write them as preferred "
                "terms of NodeAffinity's addedAffinity.",
            )
        required = [{"key": label, "operator": "Exists"} for label in present]
        required += [{"key": label, "operator": "DoesNotExist"} for label in absent]
        if filtering is not None and required:
            _require_everywhere(profile, required, args, problems)
    for point in ("filter", "score"):
        profile.remove(point, "enabled", "NodeLabel")
        profile.remove(point, "disabled", "NodeLabel")
    profile.drop_args("NodeLabel")


def _require_everywhere(profile: ProfileEdit, required: list[dict[str, Any]], like: Tree, problems: Problems) -> None:
    if profile.is_disabled("filter", "NodeAffinity") and not profile.find("filter", "enabled", "NodeAffinity"):
        problems.error(like, "NodeLabel becomes NodeAffinity's addedAffinity, but NodeAffinity is disabled at filter")
        return
    args = profile.args("NodeAffinity")
    given = args.get("addedAffinity") if args else None
    added = dict(given.fields) if given else {}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    selector = added.get(name)
    terms = selector.get("nodeSelectorTerms") if selector else None
    # Terms are alternatives, so what NodeLabel requires must stand in each.
    widened: list[Any] = [_with_expressions(term, required) for term in terms.items] if terms else []
    affinity = {**added, name: {"nodeSelectorTerms": widened or [{"matchExpressions": required}]}}
    profile.set_args("NodeAffinity", "addedAffinity", affinity, like)
    problems.warn(
        like,
        "NodeLabel becomes NodeAffinity's addedAffinity: the same nodes are refused, but in NodeAffinity's name and "
        "with its text",
    )


def _with_expressions(term: Tree, required: list[dict[str, Any]]) -> dict[str, Any]:
    expressions = term.get("matchExpressions")
    return {**term.fields, "matchExpressions": [*(expressions.items if expressions else []), *required]}


def _gone_without_successor(profile: ProfileEdit, problems: Problems) -> None:
    for point in profile.points():
        for name, instead in (
            ("ServiceAffinity", "use InterPodAffinity in the pods"),
            ("NodePreferAvoidPods", "use taints with effect PreferNoSchedule"),
        ):
            entry = profile.find(point, "enabled", name)
            if entry is not None:
                problems.error(entry, f'"{name}" cannot be converted: v1 has nothing like it; {instead}')
            profile.remove(point, "enabled", name)
            profile.remove(point, "disabled", name)
    profile.drop_args("ServiceAffinity")


def _constraints_without_type(profile: ProfileEdit, _problems: Problems) -> None:
    """In v1beta1, given constraints meant `List`; since then the type is `System` unless it is written."""
    args = profile.args("PodTopologySpread")
    constraints = args.get("defaultConstraints") if args else None
    if args is not None and constraints is not None and constraints.items and args.get("defaultingType") is None:
        profile.set_args("PodTopologySpread", "defaultingType", "List", constraints)


def _strategy_too_early(profile: ProfileEdit, problems: Problems) -> None:
    args = profile.args(FIT)
    if args is not None and (strategy := args.get("scoringStrategy")) is not None:
        problems.error(strategy, 'unknown field "scoringStrategy": it exists since v1beta2, and the file is v1beta1')


def _volume_limits(profile: ProfileEdit, problems: Problems) -> None:
    """Four plugins counted volumes by cloud; CSI migration made NodeVolumeLimits count them all."""
    for name in REFUSED_IN_V1:
        for point in profile.points():
            entry = profile.find(point, "enabled", name)
            if entry is not None:
                problems.warn(entry, f'"{name}" is dropped: NodeVolumeLimits counts these volumes since CSI migration')
            profile.remove(point, "enabled", name)
            profile.remove(point, "disabled", name)
        args = profile.args(name)
        if args is not None:
            problems.warn(args, f"is dropped with {name}")
        profile.drop_args(name)


def _selector_spread(profile: ProfileEdit, problems: Problems) -> None:
    entries = [profile.find(point, "enabled", "SelectorSpread") for point in ("preScore", "score")]
    entry = next((each for each in entries if each is not None), None)
    if entry is not None:
        args = profile.args("PodTopologySpread")
        kind = args.get("defaultingType") if args else None
        if kind is not None and kind.value == "List":
            problems.error(
                entry,
                '"SelectorSpread" cannot be converted: PodTopologySpread does its job with defaultingType System, and '
                "this profile has List",
            )
        else:
            problems.warn(entry, '"SelectorSpread" is dropped: PodTopologySpread does the same by default')
    for point in ("preScore", "score"):
        profile.remove(point, "enabled", "SelectorSpread")
        profile.remove(point, "disabled", "SelectorSpread")


def _avoid_pods_default(profile: ProfileEdit, problems: Problems) -> None:
    if not profile.is_disabled("score", "NodePreferAvoidPods") and not profile.find(
        "score", "enabled", "NodePreferAvoidPods"
    ):
        problems.warn(
            profile.plugins.get("score") or profile.tree,
            "NodePreferAvoidPods, a default of v1beta1, is gone: the annotation preferAvoidPods of nodes has no effect",
        )


V1BETA1_ONLY: Sequence[Rule] = (
    _enabled_again,
    _strategy_too_early,
    _avoid_pods_default,
    _gone_without_successor,
    _allocation_score,
    _node_label,
    _constraints_without_type,
)
LIMITS_AND_SPREAD: Sequence[Rule] = (_volume_limits, _selector_spread)
