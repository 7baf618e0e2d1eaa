"""What-ifs: the cluster as it would be, and where its scheduler would put the pods. Nothing is created anywhere.

One existing pod with other weights is one decision on the mirror, which takes milliseconds. Everything else is
simulated on a copy, on another thread: queue, preemption and every plugin take part. Both are bounded in time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.config import Configuration
from mooring.engine import Decision, Profile
from mooring.framework import FeatureGates, Pod, Point
from mooring.framework.registry import Registry
from mooring.objects import Node
from mooring.simulator.manifests import TooManyPods, manifest_workload, renamed
from mooring.simulator.move_explainer import Baseline
from mooring.simulator.outcome import NOT_TRIED, SimulationResult
from mooring.simulator.outside_data import OutsideData
from mooring.simulator.planning.drain import UNSCHEDULABLE, classified, created_again, with_cordon
from mooring.simulator.planning.node_kinds import node_kind_like, node_kind_of
from mooring.simulator.rescheduling import unplaced
from mooring.simulator.scenario import Arrival, Cluster, Documents, KindKey, Workload
from mooring.simulator.serving_profiles import unserved_reason
from mooring.simulator.simulation import simulate
from mooring.web.errors import RequestError, refused
from mooring.web.pod_page import SHOWN_NODES, funnel, score_columns
from mooring.web.what_if_request import WhatIfRequest, changed_weights, configured, loaded_text
from mooring.why.changes import ProposedChange, with_node_fields
from mooring.why.recomputation import Recomputation
from mooring.why.score_tables import runner_up, score_table

SECONDS = 10.0
"""For one simulation; what is not decided by then is left out, and the result is marked as partial."""
MOST_PODS = 2_000
"""New pods of one what-if."""
MOST_RESCHEDULED = 50_000
MOST_SCORED = 20
"""So many pods have their scores in the response."""
MOST_SHOWN = 2_000

Document = dict[str, Any]
MaySee = Callable[[str], bool]
"""Whether the user may list the pods of a namespace."""
BOUNDS = {"seconds": SECONDS, "pods": MOST_PODS, "scores": MOST_SCORED, "placements": MOST_SHOWN}


# One pod, on the mirror


def decide_again(recomputation: Recomputation, pod: Pod, request: WhatIfRequest) -> Document:
    """The pod as if it were not bound, with other weights and cordoned nodes."""
    began = time.monotonic()
    if pod.spec.scheduler_name not in recomputation.profiles_by_name:
        return _not_decided(pod)
    profile = _weighted(recomputation.profile_of(pod), request)
    edited = _edited(request, [view.object for view in recomputation.state.nodes if _is_named(view.name, request)])
    change = ProposedChange("cordon", nodes=tuple(edited))
    free_pod = recomputation.without(pod) if pod.spec.node_name else contextlib.nullcontext(pod)
    with free_pod as free, recomputation.applied(change):
        decision = recomputation.decide(free, profile)
        placement = _placement(free.key, decision)
        steps = funnel(recomputation, free, decision)
    now = pod.spec.node_name or None
    moved = [{"pod": pod.key, "from": now, "to": decision.node}] if now != decision.node else []
    return {
        "placements": [placement],
        "scores": {pod.key: _scores(decision)},
        "funnel": steps,
        "pending": {"before": int(now is None), "after": int(decision.node is None)},
        "moved": moved,
        "nodes": [],
        "took": round(time.monotonic() - began, 4),
        "bounds": BOUNDS,
        "isPartial": False,
    }


def _not_decided(pod: Pod) -> Document:
    """Of a pod that no profile serves."""
    now, message = pod.spec.node_name or None, unserved_reason(pod)
    return {
        "placements": [{"pod": pod.key, "node": now, "message": "" if now else message, "preempts": []}],
        "scores": {},
        "funnel": [],
        "pending": {"before": int(now is None), "after": int(now is None)},
        "moved": [],
        "nodes": [],
        "took": 0.0,
        "bounds": BOUNDS,
        "isPartial": False,
    }


def _weighted(profile: Profile, request: WhatIfRequest) -> Profile:
    uses = profile.points.get(Point.SCORE, ())
    weights = changed_weights(request, profile.name, {plugin.name: weight or 1 for plugin, weight in uses})
    if weights is None:
        return profile
    scored = [(plugin, weights[plugin.name]) for plugin, _ in uses if weights[plugin.name] > 0]
    return Profile(profile.name, {**profile.points, Point.SCORE: scored}, profile.percentage_of_nodes_to_score)


def _is_named(name: str, request: WhatIfRequest) -> bool:
    return name in request.cordon or name in request.uncordon or name in request.drain


def _edited(request: WhatIfRequest, nodes: Sequence[Node]) -> list[Node]:
    """The nodes as they would be."""
    cordoned, uncordoned = {*request.cordon, *request.drain}, {*request.uncordon} - {*request.cordon, *request.drain}
    return [
        with_cordon(node) if node.name in cordoned else _uncordoned(node) if node.name in uncordoned else node
        for node in nodes
    ]


def _uncordoned(node: Node) -> Node:
    taints = [taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE.key]
    return with_node_fields(node, spec={"unschedulable": False, "taints": taints})


# Simulated


class _Decisions:
    """The last decision about each of the first pods, and its scores while they can be read."""

    def __init__(self) -> None:
        self.placements: dict[str, Document] = {}
        self.scores: dict[str, Document] = {}

    def add(self, pod: Pod, decision: Decision, _at: float) -> None:
        if pod.key in self.placements or len(self.placements) < MOST_SHOWN:
            is_scored = pod.key in self.scores or len(self.scores) < MOST_SCORED
            self.placements[pod.key] = _placement(pod.key, decision, with_runner_up=is_scored)
            if is_scored:
                self.scores[pod.key] = _scores(decision)


def simulated(
    cluster: Cluster,
    request: WhatIfRequest,
    current: Configuration,
    registry: Registry,
    gates: FeatureGates | None,
    admission: Documents,
    outside_data: OutsideData,
    may_see: MaySee = lambda _namespace: True,
) -> Document:
    """On any thread: the cluster is a copy. `admission` has the classes and namespaces that new pods may name.

    No plugin sends a request: those that fetch data decide by `outside_data`, what the mirror's plugins have fetched.
    """
    began = time.monotonic()
    configuration = configured(request, current, registry, gates)
    before = {pod.key: pod.spec.node_name or None for pod in cluster.pods}
    changed, added = _changed(cluster, request)
    again = [pod.key for pod in changed.pods if before.get(pod.key) and not pod.spec.node_name]
    changed, arrivals = _with_new_pods(changed, request, admission, may_see, began + SECONDS)

    def run(loaded: Configuration, baseline: Baseline | None) -> tuple[SimulationResult, _Decisions]:
        decisions = _Decisions()
        left = SECONDS - (time.monotonic() - began) if baseline is None else SECONDS
        result = simulate(
            changed,
            list(arrivals),
            loaded,
            registry=registry,
            gates=gates,
            ties="first",
            influence=False,
            outside_data=outside_data,
            baseline=baseline,
            on_decided=decisions.add,
            time_limit=max(1.0, left),
        )
        return result, decisions

    baseline, others = None, None
    is_reconfigured = bool(request.weights) or request.config is not None
    if is_reconfigured:
        others, _ = run(configured(WhatIfRequest(), current, registry, gates), None)
        baseline = Baseline(others.pods, configured(WhatIfRequest(), current, registry, gates), registry)
    result, decisions = run(configuration, baseline)
    found = _side(result, decisions, before, again)
    found |= {"nodes": added, "bounds": BOUNDS}
    if request.compare is not None:
        other = loaded_text(request.compare.config, registry, gates, "compare.config", "configuration B")
        theirs, their_decisions = run(other, Baseline(result.pods, configuration, registry))
        found["compare"] = _side(theirs, their_decisions, before, again)
    return found | {"took": round(time.monotonic() - began, 3)}


def _side(result: SimulationResult, decisions: _Decisions, before: dict[str, str | None], again: list[str]) -> Document:
    """What one configuration does."""
    evicted: dict[str, list[str]] = {}
    for eviction in result.evictions:
        evicted.setdefault(eviction.preemptor, []).append(eviction.victim)
    placements = []
    outcomes = {pod.key: pod for pod in result.pods}
    for key, outcome in list(outcomes.items())[:MOST_SHOWN]:
        found = decisions.placements.get(key) or {"pod": key}
        is_placed = outcome.node is not None and not outcome.is_preempted
        placements.append(
            found
            | {
                "node": outcome.node if is_placed else None,
                "message": "" if is_placed else outcome.message or found.get("message") or NOT_TRIED,
                "preempts": evicted.get(key, []),
            }
        )
    moves = {move.pod: move for move in result.moves}
    moved: list[Document] = [
        {
            "pod": move.pod,
            "from": move.before,
            "to": move.after,
            "plugin": move.plugin or None,
            "cause": move.cause,
            "explanation": move.explained(),
        }
        for move in result.moves[:MOST_SHOWN]
    ]
    moved += [
        {"pod": key, "from": before[key], "to": outcomes[key].node}
        for key in again
        if key in outcomes and key not in moves and outcomes[key].node != before[key]
    ][:MOST_SHOWN]
    moved += [
        {"pod": each.victim, "from": each.node, "to": None, "preemptedBy": each.preemptor or None}
        for each in result.evictions
    ][:MOST_SHOWN]
    return {
        "placements": placements,
        "scores": decisions.scores,
        "pending": {
            "before": sum(1 for node in before.values() if node is None),
            "after": sum(1 for pod in result.pods if pod.node is None or pod.is_preempted),
        },
        "moved": moved,
        "isPartial": result.is_interrupted,
        "notes": result.notes,
        "total": len(result.pods),
    }


def _changed(cluster: Cluster, request: WhatIfRequest) -> tuple[Cluster, list[str]]:
    """Nodes cordoned, drained and added; and the names of those that were added."""
    drained = set(request.drain)
    pods = []
    for pod in cluster.pods:
        if pod.key == request.pod and pod.spec.node_name:
            pods.append(created_again(pod))
        elif pod.spec.node_name in drained:
            fate = classified(pod, force=True, delete_emptydir_data=True).fate
            pods += [created_again(pod)] if fate == "moves" else [pod] if fate == "stays" else []
        else:
            pods.append(pod)
    changed = msgspec.structs.replace(cluster, nodes=_edited(request, cluster.nodes), pods=pods)
    if request.reschedule:
        if len(pods) > MOST_RESCHEDULED:
            raise RequestError(413, f"at most {MOST_RESCHEDULED} pods can be scheduled again.", field="reschedule")
        changed = unplaced(changed)
    for place, each in enumerate(request.add_nodes):
        with _mistakes_in(f"addNodes[{place}]"):
            if each.like is not None:
                kind = node_kind_like(each.like, changed)
            else:
                kind = node_kind_of(each.template or "", "template")
        changed = kind.added_to(changed, each.count)
    return changed, [node.name for node in changed.nodes[len(cluster.nodes) :]]


def _with_new_pods(
    cluster: Cluster, request: WhatIfRequest, admission: Documents, may_see: MaySee, until: float
) -> tuple[Cluster, Sequence[Arrival]]:
    """Pods of namespaces that the user may not see are refused, whether they exist or not."""
    if not request.pods.strip():
        return cluster, ()
    with _mistakes_in("pods"):
        visible = [pod for pod in cluster.pods if may_see(pod.namespace)]
        admitting = msgspec.structs.replace(cluster, pods=visible, documents={**cluster.documents, **admission})
        workload = manifest_workload(request.pods, "pods", admitting, most=MOST_PODS, until=until)
    wanted = sum(_count_of(arrival, request) for arrival in workload)
    if wanted > MOST_PODS:
        raise RequestError(413, f"at most {MOST_PODS} pods can be tried at once, got {wanted}.", field="pods")
    arrivals = [copy for arrival in workload for copy in _copies(arrival, _count_of(arrival, request))]
    for namespace in sorted({arrival.pod.namespace for arrival in arrivals}):
        if not may_see(namespace):
            raise RequestError(403, f'you may not list pods in namespace "{namespace}".', field="pods")
    taken = {pod.key for pod in cluster.pods}
    for arrival in arrivals:
        if arrival.pod.key in taken:
            raise RequestError(400, f"there is a pod {arrival.pod.key} already; choose another name.", field="pods")
        taken.add(arrival.pod.key)
    return cluster.with_documents(_only_new(workload, cluster)), arrivals


def _count_of(arrival: Arrival, request: WhatIfRequest) -> int:
    count = request.counts.get(arrival.pod.name, 1)
    if not 1 <= count <= MOST_PODS:
        raise RequestError(
            413 if count > MOST_PODS else 400, f"a count is from 1 to {MOST_PODS}.", field=f"counts.{arrival.pod.name}"
        )
    return count


def _copies(arrival: Arrival, count: int) -> Iterator[Arrival]:
    if count == 1:
        yield arrival
        return
    for number in range(1, count + 1):
        yield renamed(arrival, f"{arrival.pod.name}-{number}")


def _only_new(workload: Workload, cluster: Cluster) -> dict[KindKey, list[Any]]:
    """Objects of the manifests that the cluster does not have as objects already: each must be there once."""
    kinds = {(type(each).KIND.api_version, type(each).KIND.kind, each.key) for each in cluster.objects}
    return {
        kind: [each for each in group if (*kind, _key(each)) not in kinds] for kind, group in workload.documents.items()
    }


def _key(document: Any) -> str:
    metadata = document["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


@contextlib.contextmanager
def _mistakes_in(field: str) -> Iterator[None]:
    try:
        yield
    except OperatorMistake as error:
        raise refused(error, field=field, status=413 if isinstance(error, TooManyPods) else 400) from error


# Decisions


def _placement(key: str, decision: Decision, *, with_runner_up: bool = True) -> Document:
    plan = decision.plan
    found: Document = {
        "pod": key,
        "node": decision.node,
        "message": decision.message,
        "preempts": [pod.key for pod in plan.evict] if plan is not None else [],
        "score": decision.total if decision.node is not None else None,
        "runnerUp": None,
        "margin": None,
    }
    if plan is not None and plan.nominate:
        found["nominatedNode"] = plan.nominate
    if with_runner_up and decision.node is not None and (columns := decision.columns()) is not None:
        second = runner_up(columns, decision.node)
        if second is not None:
            found |= {"runnerUp": second["node"], "margin": second["margin"]}
    return found


def _scores(decision: Decision) -> Document:
    columns = decision.columns()
    if columns is None:
        return {"plugins": [], "nodes": [], "scoredNodes": 0}
    return score_columns(score_table(columns, decision.node, SHOWN_NODES))
