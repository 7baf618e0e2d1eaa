"""How many more pods of a kind fit into a cluster, on which nodes, and what limits them.

Pods arrive one after the other, on virtual time, until one is refused: every plugin of the configuration takes part.
Nothing is evicted for them. Pods that are pending in the cluster come first, as in a scheduler's queue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.engine import Decision
from mooring.framework import FeatureGates, Pod
from mooring.framework.registry import Registry
from mooring.objects.requests import in_units, requests_on_node
from mooring.plugins.default.node_resources_fit import TOO_MANY_PODS, insufficient
from mooring.simulator.configurations import AnyConfiguration, PluginSource, configured, registry_of
from mooring.simulator.manifests import renamed
from mooring.simulator.outcome import NOT_TRIED
from mooring.simulator.outside_data import OutsideData
from mooring.simulator.planning.pod_manifests import read_pod_manifest
from mooring.simulator.scenario import Arrival, Cluster, Workload, check_cluster
from mooring.simulator.serving_profiles import for_one_moment, profile_names, schedulers_of, unserved_note
from mooring.simulator.simulation import Ties, simulate

MOST = 10_000
"""So many pods are tried, unless a number is given."""
APART_SECONDS = 1e-5
"""Between two arrivals: long enough that the first is decided, short enough that no plugin times out."""
PODS = "pods"


class FitLimit(msgspec.Struct, frozen=True, rename="camel"):
    """A reason why nodes do not take one more pod."""

    reason: str
    """In kube-scheduler's words."""
    nodes: int
    only_reason: int
    """On so many of these nodes there is no other reason."""
    resource: str | None = None
    """The resource that they lack, if it is one; `pods`: they may run no more of them."""
    requested: int = 0
    most_free: int = 0
    """On one of these nodes. CPU in thousandths, all else in whole units."""
    most_free_on: str = ""


class FitResult(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods fit."""

    pod: str
    """Namespace and name of the manifest."""
    fits: int
    tried_up_to: int
    """It was not tried whether more fit."""
    node_count: int
    nodes: dict[str, int]
    """How many pods each node takes; the others take none. The most first."""
    message: str = ""
    """Why the next pod does not fit, in kube-scheduler's words; empty: none was refused."""
    limits: list[FitLimit] = []
    """Reasons why nodes do not take the next pod, the most decisive first."""
    would_preempt: list[str] = []
    """Pods that the scheduler would evict for the next one."""
    would_preempt_on: str = ""
    is_interrupted: bool = False
    notes: list[str] = []
    """What the result does not account for."""

    @property
    def is_limited(self) -> bool:
        """A pod was refused: no more fit."""
        return bool(self.message)

    @property
    def dominant(self) -> FitLimit | None:
        """What stands in the way on most nodes."""
        return self.limits[0] if self.limits else None


def fit(
    cluster: Cluster,
    pod: Pod | Workload | str | Path,
    configuration: AnyConfiguration = None,
    *,
    count: int | None = None,
    plugins: Sequence[PluginSource] = (),
    registry: Registry | None = None,
    gates: FeatureGates | None = None,
    ties: Ties = None,
    outside_data: OutsideData | None = None,
) -> FitResult:
    """How many more of these pods the cluster takes, or whether it takes `count`.

    `pod` is an object, or the path of a manifest of a Pod or of an owner with a template. `outside_data` is what
    plugins fetched of other systems; None: nothing of it is known.
    """
    check_cluster(cluster, "fit(cluster, pod)")
    if isinstance(pod, str | Path):
        pod = read_pod_manifest(pod, cluster)
    if isinstance(pod, Workload):
        cluster, pod = cluster.with_documents(pod.documents), pod[0].pod
    registry = registry if registry is not None else registry_of(plugins, configuration)
    loaded = configured(configuration, registry, plugins, gates)
    if pod.spec.scheduler_name not in profile_names(loaded):
        raise OperatorMistake(unserved_note([pod.spec.scheduler_name], loaded))
    outside_data = outside_data or OutsideData()
    loaded, notes = for_one_moment(loaded, registry, schedulers_of(cluster, [pod]))
    trial = _Trial(cluster, pod, MOST if count is None else count)
    outcome = simulate(
        cluster,
        trial.arrivals(),
        loaded,
        registry=registry,
        gates=gates,
        ties=ties,
        influence=False,
        outside_data=outside_data,
        on_decided=trial.decided,
    )
    placed = {each.key: each.node for each in outcome.bound if each.node is not None}
    messages = {each.key: each.message for each in outcome.pending}
    result = trial.result(placed, messages, is_interrupted=outcome.is_interrupted)
    return msgspec.structs.replace(result, notes=[*notes, *outcome.notes])


class _Trial:
    """Makes pods until one is refused."""

    def __init__(self, cluster: Cluster, pod: Pod, most: int) -> None:
        self._cluster = cluster
        self._pod = pod
        self._most = most
        self._made: dict[str, int] = {}
        """The key of each pod → its number."""
        self._refusal: Decision | None = None
        self._last: Decision | None = None

    def arrivals(self) -> Iterator[Arrival]:
        taken = {pod.name for pod in self._cluster.pods if pod.namespace == self._pod.namespace}
        like = Arrival(0.0, _unplaced(self._pod))
        number = 0
        while len(self._made) < self._most and self._refusal is None:
            number += 1
            if self._last is not None and self._last.node is None:  # withdrawn: by Reserve or Permit
                self._refusal = self._last
                return
            name = f"{self._pod.name}-{number}"
            if name in taken:
                continue
            arrival = renamed(like, name)
            self._made[arrival.pod.key] = len(self._made)
            yield Arrival(len(self._made) * APART_SECONDS, arrival.pod)

    def decided(self, pod: Pod, decision: Decision, at: float) -> None:
        if self._refusal is None and pod.key in self._made:
            self._last = decision
            if decision.node is None:
                self._refusal = decision

    def result(self, placed: dict[str, str], messages: dict[str, str], *, is_interrupted: bool) -> FitResult:
        refusal = self._refusal
        if refusal is None and self._last is not None and self._last.node is None:
            refusal = self._last
        # A pod that was refused may have been bound later, after an eviction: it did not fit.
        end = self._made[refusal.pod.key] if refusal is not None else len(self._made)
        tried = [key for key, number in self._made.items() if number < end]
        taken = Counter(placed[key] for key in tried if key in placed)
        message = refusal.message if refusal is not None else ""
        if not message and not is_interrupted:
            # Not bound after its decision: it waits for a permit, or its binding failed.
            message = next((messages.get(key) or NOT_TRIED for key in tried if key not in placed), "")
        plan = refusal.plan if refusal is not None else None
        return FitResult(
            self._pod.key,
            sum(taken.values()),
            self._most,
            len(self._cluster.nodes),
            dict(sorted(taken.items(), key=lambda each: (-each[1], each[0]))),
            message,
            self._limits(refusal, taken) if refusal is not None else [],
            [victim.key for victim in plan.evict] if plan is not None else [],
            (plan.nominate or "") if plan is not None else "",
            is_interrupted,
        )

    def _limits(self, refusal: Decision, taken: Counter[str]) -> list[FitLimit]:
        nodes: defaultdict[str, list[str]] = defaultdict(list)
        alone: Counter[str] = Counter()
        for name, (_, rejection) in refusal.rejections.items():
            for reason in rejection.reasons:
                nodes[reason].append(name)
            if len(rejection.reasons) == 1:
                alone.update(rejection.reasons)
        requested = {**self._pod.requests.amounts, PODS: 1}
        lacking = {TOO_MANY_PODS: PODS} | {insufficient(resource): resource for resource in requested}
        free = self._free(taken) if lacking.keys() & nodes.keys() else {}
        limits = []
        for reason, names in nodes.items():
            limit = FitLimit(reason, len(names), alone[reason])
            if (resource := lacking.get(reason)) is not None:
                on = max(names, key=lambda name: free[name].get(resource, 0))
                limit = msgspec.structs.replace(
                    limit,
                    resource=resource,
                    requested=requested[resource],
                    most_free=free[on].get(resource, 0),
                    most_free_on=on,
                )
            limits.append(limit)
        return sorted(limits, key=lambda limit: (-limit.only_reason, -limit.nodes, limit.reason))

    def _free(self, taken: Counter[str]) -> dict[str, dict[str, int]]:
        """What is left on each node, with the pods that fit."""
        free = {}
        for node in self._cluster.nodes:
            free[node.name] = in_units(node.status.allocatable)
            free[node.name][PODS] = int(node.status.allocatable.get(PODS, 0))
        requested = self._pod.requests.amounts
        for pod in self._cluster.pods:
            if pod.spec.node_name in free:
                _take(free[pod.spec.node_name], requests_on_node(pod).amounts, 1)
        for name, count in taken.items():
            _take(free[name], requested, count)
        return free


def _take(free: dict[str, int], amounts: dict[str, int], count: int) -> None:
    for resource, amount in amounts.items():
        free[resource] = free.get(resource, 0) - amount * count
    free[PODS] -= count


def _unplaced(pod: Pod) -> Pod:
    """As its creator wrote it: on no node."""
    if not pod.spec.node_name:
        return pod
    return Pod(metadata=pod.metadata, spec=msgspec.structs.replace(pod.spec, node_name=""))
