"""Arguments of PodTopologySpread: which constraints a pod has that names none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from mooring.framework import Args, ArgsPart, Meta
from mooring.objects.core import TopologySpreadConstraint
from mooring.objects.names import qualified_name
from mooring.objects.selectors import LabelSelector

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)


class DefaultConstraint(ArgsPart):
    """A topology spread constraint as in a pod's spec; it counts pods of the same Services and owner."""

    max_skew: Annotated[int, Meta(description="How many more pods a domain may have than the emptiest; above 0.")] = 0
    topology_key: Annotated[str, Meta(description="The node label whose values are the domains.")] = ""
    when_unsatisfiable: Annotated[str, Meta(description="DoNotSchedule or ScheduleAnyway.")] = ""
    label_selector: Annotated[LabelSelector | None, Meta(description="Must not be given.")] = None
    min_domains: Annotated[
        int | None, Meta(description="With fewer domains than this, the emptiest counts as empty.")
    ] = None
    node_affinity_policy: Annotated[
        str, Meta(description="Honor: only nodes that the pod's node affinity admits are domains.")
    ] = "Honor"
    node_taints_policy: Annotated[
        str, Meta(description="Honor: only nodes whose taints the pod tolerates are domains.")
    ] = "Ignore"
    match_label_keys: Annotated[
        list[str], Meta(description="Read as in a pod's spec; without a selector to narrow it changes nothing.")
    ] = []


class PodTopologySpreadArgs(Args):
    """Arguments of PodTopologySpread."""

    default_constraints: Annotated[
        tuple[DefaultConstraint, ...],
        Meta(description="For pods that name none and belong to a Service or a controller; needs defaultingType List."),
    ] = ()
    defaulting_type: Annotated[
        Literal["System", "List", ""],
        Meta(description="System: prefer an even spread over hosts and zones. List: use defaultConstraints."),
    ] = "System"

    @property
    def is_system(self) -> bool:
        return self.defaulting_type != "List"

    def constraints(self) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of a pod that names none."""
        if self.is_system:
            return SYSTEM_DEFAULTS
        return tuple(
            TopologySpreadConstraint(
                max_skew=default.max_skew,
                topology_key=default.topology_key,
                when_unsatisfiable=default.when_unsatisfiable,
                min_domains=default.min_domains,
                node_affinity_policy=default.node_affinity_policy,
                node_taints_policy=default.node_taints_policy,
            )
            for default in self.default_constraints
        )

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.is_system and self.default_constraints:
            yield "defaultingType", "must be List when .defaultConstraints are not empty"
        seen = set()
        for at, default in enumerate(self.default_constraints):
            path = f"defaultConstraints[{at}]"
            yield from _mistakes(path, default)
            kind = (default.topology_key, default.when_unsatisfiable)
            if kind in seen:
                yield path, f"Duplicate value: {{{kind[0]}, {kind[1]}}}"
            seen.add(kind)


def _mistakes(path: str, default: DefaultConstraint) -> Iterator[tuple[str, str]]:
    if default.max_skew <= 0:
        yield f"{path}.maxSkew", f"not in valid range (0, inf): got {default.max_skew}"
    if not default.topology_key:
        yield f"{path}.topologyKey", "Required value: can not be empty"
    else:
        for sentence in qualified_name(default.topology_key):
            yield f"{path}.topologyKey", f'"{default.topology_key}": {sentence}'
    if not default.when_unsatisfiable:
        yield f"{path}.whenUnsatisfiable", "Required value: can not be empty"
    elif default.when_unsatisfiable not in (HARD, SOFT):
        yield f"{path}.whenUnsatisfiable", f'must be {HARD} or {SOFT}, got "{default.when_unsatisfiable}"'
    if default.label_selector is not None:
        yield (
            f"{path}.labelSelector",
            "Forbidden: constraint must not define a selector, as they deduced for each pod",
        )
