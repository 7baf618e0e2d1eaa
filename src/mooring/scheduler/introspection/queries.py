"""Queries of a running scheduler: `mooring explain` of one pod, and sizes for metrics."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from mooring.base.clock import Clock, timestamp
from mooring.config import Configuration
from mooring.config.as_v1 import as_v1
from mooring.engine import explanations
from mooring.framework import FeatureGates
from mooring.framework.events import NODE_ADDED, TAINTS_OF_NEW_NODES
from mooring.framework.plugin_files import code_digest, is_module_path
from mooring.framework.registry import Registry
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.preemption import Preemption
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.metrics import Sizes
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly
from mooring.scheduler.watching.feeds import PodFeed
from mooring.state import State

MOST_QUEUED = 1_000
"""Pods of the queue in one response."""
ON_PERMIT, BINDING, PERMIT = "waiting on permit", "binding", "Permit"
"""Where pods are that have left the queue, and what the former wait for."""


class Queries:
    """Reads; changes nothing."""

    def __init__(
        self,
        state: State,
        queue: SchedulingQueue,
        pods: PodFeed,
        decision_log: DecisionLog,
        assembly: CurrentAssembly,
        room: PermitRoom,
        bindings: BindingCycles,
        preemption: Preemption,
        clock: Clock,
        in_force: Callable[[], tuple[Configuration, Registry]],
        gates: FeatureGates,
    ) -> None:
        self._state = state
        self._queue = queue
        self._pods = pods
        self._decision_log = decision_log
        self._assembly = assembly
        self._room = room
        self._bindings = bindings
        self._preemption = preemption
        self._clock = clock
        self._in_force = in_force
        self._gates = gates

    def sizes(self) -> list[Sizes]:
        """Read off the queue and the state; on another thread, so only lengths and copies."""
        assumed, pods = self._state.pod_counts()
        return [
            Sizes("pending_pods", {(queue,): count for queue, count in self._queue.counts().items()}),
            Sizes("cache_size", {("nodes",): self._state.node_count, ("pods",): pods, ("assumed_pods",): assumed}),
            Sizes("unschedulable_pods", self._queue.unschedulable_by_plugin()),
            Sizes("goroutines", {("binding",): len(self._bindings), ("preemption",): len(self._preemption)}),
            Sizes("inflight_events", {(label,): count for label, count in self._queue.in_flight_events().items()}),
        ]

    def explain(self, request: dict[str, Any]) -> dict[str, Any]:
        """A request of the control socket. With configuration and gates, if requested: to decide as this one does."""
        response: dict[str, Any] = {"profiles": sorted(self._assembly.current.profiles)}
        if request.get("queue"):
            response["queuedPods"] = self._queued_pods()
        else:
            response |= self._explained(request["explain"])
            if plugins := self._explanations(request["explain"]):
                response["plugins"] = plugins
        if request.get("configuration"):
            configuration, registry = self._in_force()
            response["configuration"] = as_v1(configuration)
            response["featureGates"] = self._gates.changed()
            response["pluginPaths"] = _paths(configuration, registry)
            response["pluginCode"] = code_digest()
        return response

    def _queued_pods(self) -> dict[str, dict[str, Any]]:
        """By uid: attempts so far, and the time of the next one. Bounded: the loop waits meanwhile."""
        found: dict[str, dict[str, Any]] = {}
        for queued in itertools.islice(self._queue.pending(), MOST_QUEUED):
            at = self._queue.next_attempt(queued)
            found[queued.pod.uid] = {"attempts": queued.attempts, "place": queued.place.value} | (
                {"nextAttempt": timestamp(at)} if at is not None else {}
            )
        return found

    def _explained(self, key: str) -> dict[str, Any]:
        found = self._decision_log.read(key)
        if found is None:
            return {"found": False, "gating": self._gating(key)}
        uid = found["uid"]
        place = self._queue.where(uid)
        if (waits := self._permits(uid)) is not None:
            found["waitsFor"], place = waits, ON_PERMIT
        elif self._bindings.is_binding(uid):
            place = BINDING
        elif (waiting := self._queue.find(uid)) is not None and "waitsForKinds" not in found:
            # (A pod that waits for a kind is held back again, whatever else happens, until the kind can be listed.)
            found["waitsFor"] = self._waits_for(waiting)
        response = {"found": True, "decision": found, "queue": place, "gating": self._gating(key)}
        if (queued := self._queue.find(uid)) is not None and (at := self._queue.next_attempt(queued)) is not None:
            response["nextAttempt"] = timestamp(at)
        return response

    def _explanations(self, key: str) -> list[dict[str, Any]]:
        """What plugins know of a pod that is not bound yet."""
        uid = self._pods.uid_of(key)
        pod = self._pods.latest(uid) if uid is not None else None
        profile = self._assembly.current.profiles.get(pod.spec.scheduler_name) if pod is not None else None
        return [] if pod is None or profile is None else explanations(profile, pod)

    def _permits(self, uid: str) -> list[dict[str, Any]] | None:
        """The permit plugins that the pod waits for, the one whose time ends first first; None if it does not wait."""
        if (found := self._room.seconds_left(uid)) is None:
            return None
        node, seconds = found
        now = self._clock.now()
        return [
            {
                "plugin": plugin,
                "resource": PERMIT,
                "actions": ["Allow"],
                "node": node,
                "deadline": timestamp(now + left),
                "secondsLeft": round(left, 1),
            }
            for plugin, left in sorted(seconds.items(), key=lambda each: each[1])
        ]

    def _gating(self, key: str) -> dict[str, Any] | None:
        """Which plugin keeps the pod out of the queue, if one does."""
        uid = self._pods.uid_of(key)
        waiting = self._queue.find(uid) if uid is not None else None
        if waiting is None or waiting.gating is None:
            return None
        return {"uid": uid, "plugin": waiting.gating.plugin, "reasons": list(waiting.gating.reasons)}

    def _waits_for(self, waiting: QueuedPodInfo) -> list[dict[str, Any]]:
        """The events that would requeue the pod, registered by the plugins that rejected it."""
        hints = self._assembly.current.rules[waiting.pod.spec.scheduler_name].hints
        return [
            {"plugin": plugin, "resource": hint.resource, "actions": hint.action.names()}
            | ({"follows": NODE_ADDED.label} if hint is TAINTS_OF_NEW_NODES else {})
            for plugin in sorted(waiting.rejectors)
            for hint in hints.get(plugin, ())
        ]


def _paths(configuration: Configuration, registry: Registry) -> dict[str, str]:
    """By plugin: the file, folder or module:Class that `--plugins` named; without those that are installed."""
    used = sorted({name for profile in configuration.profiles for name in profile.used_plugins})
    entries = [entry for name in used if (entry := registry.get(name)) is not None]
    return {
        entry.name: path if is_module_path(path) else os.path.abspath(path) for entry in entries for path in entry.paths
    }
