"""Whether nodes can be drained: where their pods would run, which pods and PodDisruptionBudgets object.

The nodes are cordoned, their pods deleted and created again as their controllers do, and the scheduler places them on
what remains, on virtual time. Which pods may go is decided as by `kubectl drain --ignore-daemonsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Literal

import msgspec

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.framework import FeatureGates, Pod
from mooring.framework.registry import Registry
from mooring.objects.core import Node, PodStatus, Taint
from mooring.simulated.records import controller_of
from mooring.simulator.configurations import AnyConfiguration, PluginSource, configured, registry_of
from mooring.simulator.outcome import NOT_TRIED, SimulationResult
from mooring.simulator.outside_data import OutsideData
from mooring.simulator.planning.budgets import BudgetCheck, check_budgets
from mooring.simulator.scenario import Arrival, Cluster, check_cluster
from mooring.simulator.serving_profiles import profile_names, unserved_reason
from mooring.simulator.simulation import Ties, simulate

LOCAL_STORAGE = "Pods with local storage (use --delete-emptydir-data to override)"
NO_CONTROLLER = "Pods declare no controller (use --force to override)"
DAEMON, STATIC = "DaemonSet-managed Pods are ignored", "static pods are ignored"
NOT_RECREATED, IS_TERMINATING = "no controller creates it again", "it is being deleted already"
PREEMPTED = "it would be preempted"
MIRROR = "kubernetes.io/config.mirror"
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
MOST_ALONE = 20
"""So many nodes are also checked one at a time."""

Fate = Literal["moves", "pending", "unserved", "deleted", "stays"]
"""`unserved`: no profile serves it, so that it is not known whether it would find a place."""


class DrainedPod(msgspec.Struct, frozen=True, rename="camel"):
    """What becomes of a pod of these nodes."""

    pod: str
    node: str
    """Where it is now."""
    fate: Fate
    target: str | None = None
    """Where it would run."""
    target_once_gone: str | None = None
    """Of a pod that stays pending: where it would run when the nodes are no longer in the cluster."""
    message: str = ""
    """Why it is pending, stays or is deleted for good."""
    objection: str = ""
    """Why `kubectl drain` would not begin, or the Eviction API refuses."""


class DrainResult(msgspec.Struct, frozen=True, rename="camel"):
    """Whether nodes can go."""

    nodes: list[str]
    pods: list[DrainedPod]
    budgets: list[BudgetCheck]
    """Those that protect pods of these nodes."""
    evicted: list[str]
    """Pods of other nodes that would be preempted, to make room."""
    alone: dict[str, int]
    """Node → how many pods would be pending or evicted if it went by itself; empty unless all at once is a problem."""
    notes: list[str] = []
    """What the result does not account for."""

    @property
    def pending(self) -> list[DrainedPod]:
        return [pod for pod in self.pods if pod.fate == "pending"]

    @property
    def unserved(self) -> list[DrainedPod]:
        return [pod for pod in self.pods if pod.fate == "unserved"]

    @property
    def objections(self) -> list[DrainedPod]:
        return [pod for pod in self.pods if pod.objection]

    @property
    def objecting_budgets(self) -> list[BudgetCheck]:
        return [budget for budget in self.budgets if budget.objects]

    @property
    def is_impossible(self) -> bool:
        """A pod finds no place, one is evicted for it, or something objects."""
        return bool(self.pending or self.objections or self.objecting_budgets or self.evicted)

    @property
    def is_possible(self) -> bool:
        """Every pod finds a place, none is evicted for it, and nothing objects."""
        return not (self.is_impossible or self.unserved)


def drain_check(
    cluster: Cluster,
    nodes: Sequence[str],
    configuration: AnyConfiguration = None,
    *,
    force: bool = False,
    delete_emptydir_data: bool = False,
    plugins: Sequence[PluginSource] = (),
    registry: Registry | None = None,
    gates: FeatureGates | None = None,
    ties: Ties = None,
    outside_data: OutsideData | None = None,
) -> DrainResult:
    """Check whether these nodes can be drained together; `force` and `delete_emptydir_data` as of `kubectl drain`.

    `outside_data` is what plugins fetched of other systems; None: nothing of it is known.
    """
    check_cluster(cluster, "drain_check(cluster, nodes)")
    nodes = list(dict.fromkeys([nodes] if isinstance(nodes, str) else nodes))
    _check_nodes(cluster, nodes)
    registry = registry if registry is not None else registry_of(plugins, configuration)
    loaded = configured(configuration, registry, plugins, gates)
    run = partial(
        simulate,
        configuration=loaded,
        registry=registry,
        gates=gates,
        ties=ties,
        influence=False,
        outside_data=outside_data or OutsideData(),
    )
    leaving = [pod for pod in cluster.pods if pod.spec.node_name in set(nodes)]
    drained = [classified(pod, force=force, delete_emptydir_data=delete_emptydir_data) for pod in leaving]
    served = profile_names(loaded)
    drained = [
        msgspec.structs.replace(fate, fate="unserved", message=unserved_reason(pod))
        if fate.fate == "moves" and pod.spec.scheduler_name not in served
        else fate
        for pod, fate in zip(leaving, drained, strict=True)
    ]
    evicted = [pod for pod, fate in zip(leaving, drained, strict=True) if fate.fate != "stays"]
    budgets, refused = check_budgets(cluster, evicted)
    unserved = {fate.pod for fate in drained if fate.fate == "unserved"}
    moved = _moved(cluster, nodes, run, cordoned, unserved)
    gone = _moved(cluster, nodes, run, without, unserved) if moved.pending else moved
    pods = [_placed(pod, moved, gone) if pod.fate == "moves" else pod for pod in drained]
    pods = [msgspec.structs.replace(pod, objection=refused.get(pod.pod, pod.objection)) for pod in pods]
    alone = {}
    if moved.problems and 1 < len(nodes) <= MOST_ALONE:
        alone = {node: _moved(cluster, [node], run, cordoned, unserved).problems for node in nodes}
    return DrainResult(nodes, pods, budgets, moved.victims, alone, moved.notes)


def _check_nodes(cluster: Cluster, nodes: Sequence[str]) -> None:
    known = [node.name for node in cluster.nodes]
    present = set(known)
    problems = [
        Problem(name, f"the cluster has no such node.{did_you_mean(name, known)}")
        for name in nodes
        if name not in present
    ]
    if problems:
        raise OperatorMistake.found_in("the list of nodes", problems)
    if not nodes:
        raise OperatorMistake("No node to drain was named.")


# Which pods go, as kubectl drain decides


def classified(pod: Pod, *, force: bool, delete_emptydir_data: bool) -> DrainedPod:
    """What becomes of a pod of a drained node, before it is known where it would run."""
    here = partial(DrainedPod, pod.key, pod.spec.node_name)
    controller = controller_of(pod)
    if controller is not None and controller[0] == "DaemonSet":
        return here("stays", message=DAEMON)
    if MIRROR in pod.annotations or (controller is not None and controller[0] == "Node"):
        return here("stays", message=STATIC)
    if pod.is_terminating:
        return here("deleted", message=IS_TERMINATING)
    objection = ""
    if not delete_emptydir_data and any(volume.get("emptyDir") is not None for volume in pod.spec.volumes):
        objection = LOCAL_STORAGE
    elif controller is None and not force:
        objection = NO_CONTROLLER
    if controller is None:
        return here("deleted", message=NOT_RECREATED, objection=objection)
    return here("moves", objection=objection)


# Where they would run


class _Moved(msgspec.Struct):
    """Where the pods of some nodes would run."""

    targets: dict[str, str]
    pending: dict[str, str]
    """Pod → why."""
    victims: list[str]
    notes: list[str]

    @property
    def problems(self) -> int:
        return len(self.pending) + len(self.victims)


Simulate = Callable[..., SimulationResult]
Leave = Callable[[Cluster, set[str]], list[Node]]


def _moved(cluster: Cluster, nodes: Sequence[str], run: Simulate, leave: Leave, unserved: Set[str]) -> _Moved:
    """Create the pods of these nodes again, on a cluster that the nodes leave in this way.

    What becomes of the unserved ones is left open.
    """
    names = set(nodes)
    leaving = [pod for pod in cluster.pods if pod.spec.node_name in names]
    again = {pod.key: pod for pod in leaving if classified(pod, force=True, delete_emptydir_data=True).fate == "moves"}
    remaining = [
        pod
        for pod in cluster.pods
        # Daemons and static pods end with their nodes.
        if pod.key not in again and (leave is cordoned or pod.spec.node_name not in names)
    ]
    left = msgspec.structs.replace(cluster, nodes=leave(cluster, names), pods=remaining)
    outcome = run(left, [Arrival(0.0, created_again(pod)) for pod in again.values()])
    if outcome.is_interrupted:
        raise KeyboardInterrupt
    moved = _Moved({}, {}, [each.victim for each in outcome.evictions if each.victim not in again], outcome.notes)
    for pod in outcome.pods:
        if pod.key not in again or pod.key in unserved:
            continue
        if pod.node is None or pod.is_preempted:
            moved.pending[pod.key] = PREEMPTED if pod.is_preempted else pod.message or NOT_TRIED
        else:
            moved.targets[pod.key] = pod.node
    return moved


def cordoned(cluster: Cluster, names: set[str]) -> list[Node]:
    """The nodes are there and take no pods, as while they are drained."""
    return [with_cordon(node) if node.name in names else node for node in cluster.nodes]


def without(cluster: Cluster, names: set[str]) -> list[Node]:
    """The nodes are gone."""
    return [node for node in cluster.nodes if node.name not in names]


def with_cordon(node: Node) -> Node:
    """As `kubectl cordon` and the node controller leave it."""
    taints = [taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE.key]
    spec = msgspec.structs.replace(node.spec, unschedulable=True, taints=(*taints, UNSCHEDULABLE))
    return Node(metadata=node.metadata, spec=spec, status=node.status)


def created_again(pod: Pod) -> Pod:
    """As its controller creates it again. Claims that were made for it are taken over: nothing makes others here."""
    status = PodStatus(
        phase="Pending",
        resource_claim_statuses=pod.status.resource_claim_statuses,
        extended_resource_claim_status=pod.status.extended_resource_claim_status,
    )
    return Pod(metadata=pod.metadata, spec=msgspec.structs.replace(pod.spec, node_name=""), status=status)


def _placed(pod: DrainedPod, moved: _Moved, gone: _Moved) -> DrainedPod:
    if (target := moved.targets.get(pod.pod)) is not None:
        return msgspec.structs.replace(pod, target=target)
    return msgspec.structs.replace(
        pod, fate="pending", message=moved.pending[pod.pod], target_once_gone=gone.targets.get(pod.pod)
    )
