"""The requests that the scheduler will make, derived from the configuration: each verb, and the component that needs
it.

The scheduler itself watches nodes and pods and writes events and conditions of pods. The rest follows from the plugins
in use: `Objects[Kind]` in a constructor makes a kind watched, a service that writes needs what it writes, and a
post_filter that can return a `Plan` has pods evicted. All of it is part of what every cluster grants kube-scheduler,
except the custom kinds that plugins read and the events that name another scheduler which binds these pods.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.config import Configuration, LeaderElection
from mooring.framework.contract import needs
from mooring.framework.gates import FeatureGates
from mooring.framework.points import Point
from mooring.framework.registry import PluginEntry, Registry
from mooring.framework.resource_metrics import NODE_METRICS, ResourceMetrics
from mooring.framework.services import Binder, ClaimWriter, PodWriter, VolumeWriter
from mooring.framework.verdicts import Plan, PostFilterRefusal
from mooring.objects.core import Node, Pod
from mooring.objects.meta import Kind
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource import ResourceClaim
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim

POD_GROUPS = "the scheduling of pod groups"
SCHEDULER, ELECTION, SERVING = "the scheduler itself", "leader election", "who may read metrics"
NAMING = "naming another scheduler that binds these pods"
"""Nothing fails without it: the other scheduler is then not named."""
EXTENDED_RESOURCES, GENERIC_WORKLOAD = "DRAExtendedResource", "GenericWorkload"

EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
CORE_EVENTS = Kind("", "v1", "Event", "events")
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
TOKEN_REVIEWS = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource; `namespace` and `name` are empty where it is meant for all."""

    group: str
    resource: str
    """With its subresource, as rules name it: `pods/status`."""
    verb: str
    namespace: str = ""
    name: str = ""
    needed_by: frozenset[str] = field(default=frozenset(), compare=False)
    """The plugins, or the part of the scheduler, that need it."""

    @property
    def is_optional(self) -> bool:
        return self.needed_by == {NAMING}


_WRITERS: Mapping[type, tuple[tuple[Kind, str, str], ...]] = {
    Binder: ((Pod.KIND, "binding", "create"), (Pod.KIND, "", "get")),
    PodWriter: ((Pod.KIND, "", "patch"),),
    VolumeWriter: ((PersistentVolume.KIND, "", "patch"), (PersistentVolumeClaim.KIND, "", "patch")),
    ClaimWriter: (
        (ResourceClaim.KIND, "", "get"),
        (ResourceClaim.KIND, "", "patch"),
        (ResourceClaim.KIND, "status", "patch"),
        # Not a path of the API: since 1.36 a server requires it when a status names the consumers of devices.
        (ResourceClaim.KIND, "binding", "patch"),
    ),
}
"""What each service writes. A binding without a response is looked up, so that it is not created twice."""


def rights_of(
    configuration: Configuration,
    registry: Registry,
    *,
    gates: FeatureGates | None = None,
    election: LeaderElection | None = None,
    serves: bool = True,
    only_reads: bool = False,
) -> tuple[Right, ...]:
    """Everything that a scheduler with this configuration requests, sorted.

    `election`: as the command line has it, if it differs from the file. `serves`: it has the cluster review who may
    read its metrics. `only_reads`: shadow mode, which decides and writes nothing.
    """
    gates = gates or FeatureGates()
    election = election or configuration.leader_election
    found = [*_scheduler(only_reads=only_reads)]
    if gates.on(GENERIC_WORKLOAD):
        found += _pod_groups(only_reads=only_reads)
    for entry, points in _plugins_in_use(configuration, registry):
        found += _reads(entry, configuration)
        if not only_reads:
            found += _writes(entry, points, gates)
    if election.leader_elect:
        found += election_rights(election)
    if serves:
        found += (_right(kind, "create", SERVING) for kind in (TOKEN_REVIEWS, ACCESS_REVIEWS))
    return _merged(found)


def _scheduler(*, only_reads: bool) -> Iterator[Right]:
    for kind in (Node.KIND, Pod.KIND):
        for verb in ("list", "watch"):
            yield _right(kind, verb, SCHEDULER)
    if not only_reads:
        yield _right(Pod.KIND, "get", SCHEDULER)  # after a conflict, to see whether another client has bound it
        yield _right(Pod.KIND, "patch", SCHEDULER, subresource="status")
        for verb in ("create", "patch"):
            yield _right(EVENTS, verb, SCHEDULER)
        yield _right(CORE_EVENTS, "list", NAMING)


def _pod_groups(*, only_reads: bool) -> Iterator[Right]:
    """With the gate every group has its cycle, whichever plugins are in use."""
    for verb in ("list", "watch"):
        yield _right(PodGroup.KIND, verb, POD_GROUPS)
    if not only_reads:
        yield _right(PodGroup.KIND, "patch", POD_GROUPS, subresource="status")


def _plugins_in_use(configuration: Configuration, registry: Registry) -> Iterator[tuple[PluginEntry, frozenset[Point]]]:
    """Each plugin with the points where some profile uses it."""
    points: dict[str, set[Point]] = {}
    for profile in configuration.profiles:
        for point, uses in profile.points.items():
            for use in uses:
                points.setdefault(use.name, set()).add(point)
    for name, used_at in points.items():
        entry = registry.get(name)
        assert entry is not None, "the configuration was checked against this registry"
        yield entry, frozenset(used_at)


def _reads(entry: PluginEntry, configuration: Configuration) -> Iterator[Right]:
    for kind in entry.object_types:
        for verb in ("list", "watch"):
            yield _right(kind.KIND, verb, entry.name)
    if ResourceMetrics in needs(entry.cls).values() and _is_called(ResourceMetrics, entry, configuration):
        yield _right(NODE_METRICS, "list", entry.name)


def _is_called(service: type, entry: PluginEntry, configuration: Configuration) -> bool:
    """Whether the arguments of some profile have the plugin call a service that it takes."""
    for profile in configuration.profiles:
        if any(use.name == entry.name for uses in profile.points.values() for use in uses):
            args = profile.args.get(entry.name)
            if args is None or service not in args.unused_services():
                return True
    return False


def _writes(entry: PluginEntry, points: frozenset[Point], gates: FeatureGates) -> Iterator[Right]:
    needed = set(needs(entry.cls).values()) & set(_WRITERS)
    if Point.POST_FILTER in points:
        returned = _returned_types(entry.cls.post_filter)
        if Plan in returned:
            yield _right(Pod.KIND, "delete", entry.name)
        if PostFilterRefusal in returned and ResourceClaim in entry.object_types:
            needed.add(ClaimWriter)  # it can have claims given back
    for service in needed:
        for kind, subresource, verb in _WRITERS[service]:
            yield _right(kind, verb, entry.name, subresource=subresource)
    if ClaimWriter in needed and (gates.on(EXTENDED_RESOURCES) or entry.source != "default"):
        for verb in ("create", "delete"):
            yield _right(ResourceClaim.KIND, verb, entry.name)


def _returned_types(post_filter: Any) -> set[Any]:
    """What it can return, by its annotation; without one it may return anything."""
    try:
        annotation = typing.get_type_hints(post_filter).get("return", Any)
    except NameError:  # imported for type checkers only
        annotation = Any
    if annotation is Any:
        return {Plan, PostFilterRefusal}
    return set(typing.get_args(annotation) or (annotation,))


def election_rights(election: LeaderElection) -> Iterator[Right]:
    namespace, name = election.resource_namespace, election.resource_name
    # What is to be created has no name yet that a rule could require.
    yield _right(LEASES, "create", ELECTION, namespace=namespace)
    for verb in ("get", "update"):
        yield _right(LEASES, verb, ELECTION, namespace=namespace, name=name)
    yield _right(CORE_EVENTS, "create", ELECTION, namespace=namespace)


def _right(
    kind: Kind, verb: str, needed_by: str, *, subresource: str = "", namespace: str = "", name: str = ""
) -> Right:
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return Right(kind.group, resource, verb, namespace, name, frozenset({needed_by}))


def _merged(rights: Iterable[Right]) -> tuple[Right, ...]:
    """Each right once, with all components that need it."""
    needed_by: dict[Right, frozenset[str]] = {}
    for right in rights:
        needed_by[right] = needed_by.get(right, frozenset()) | right.needed_by
    return tuple(
        Right(right.group, right.resource, right.verb, right.namespace, right.name, who)
        for right, who in sorted(needed_by.items())
    )
