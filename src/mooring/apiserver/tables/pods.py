"""The columns of `kubectl get pods`: how a pod's many states become one word."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.tables.ages import age
from mooring.apiserver.tables.columns import AGE, NAME, NONE, Column, column


class _Summary:
    """Ready containers, the word for the state, restarts: read from the statuses once."""

    def __init__(self, pod: Document) -> None:
        spec, status = part(pod, "spec"), part(pod, "status")
        sidecars = {
            each.get("name") for each in items_of(spec, "initContainers") if each.get("restartPolicy") == "Always"
        }
        self.total = len(items_of(spec, "containers")) + len(sidecars)
        self.ready = 0
        self.restarts = 0
        self.last_restart: str | None = None
        self.word = str(status.get("reason") or status.get("phase") or "")
        conditions = items_of(status, "conditions")
        if any(each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions):
            self.word = "SchedulingGated"
        is_initializing = self._read_init(items_of(status, "initContainerStatuses"), sidecars, spec)
        if not is_initializing or _is_true(conditions, "Initialized"):
            self._read_main(items_of(status, "containerStatuses"), conditions)
        if part(pod, "metadata").get("deletionTimestamp"):
            if status.get("reason") == "NodeLost":
                self.word = "Unknown"
            elif status.get("phase") not in ("Succeeded", "Failed"):
                self.word = "Terminating"

    def _count_restarts(self, container: Document) -> None:
        self.restarts += container.get("restartCount", 0)
        finished = part(container, "lastState", "terminated").get("finishedAt")
        if finished and (self.last_restart is None or finished > self.last_restart):
            self.last_restart = finished

    def _read_init(self, statuses: list[Any], sidecars: set[Any], spec: Document) -> bool:
        """Whether an init container is still in the way."""
        for index, container in enumerate(statuses):
            self._count_restarts(container)
            state, is_sidecar = part(container, "state"), container.get("name") in sidecars
            terminated, waiting = state.get("terminated"), part(state, "waiting")
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if is_sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if terminated is not None:
                self.word = "Init:" + _end_word(terminated)
            elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.word = "Init:" + str(waiting["reason"])
            else:
                self.word = f"Init:{index}/{len(items_of(spec, 'initContainers'))}"
            return True
        return False

    def _read_main(self, statuses: list[Any], conditions: list[Any]) -> None:
        self.restarts, self.last_restart = 0, None
        is_running, failure = False, ""
        for container in reversed(statuses):
            self._count_restarts(container)
            state = part(container, "state")
            terminated = state.get("terminated")
            if part(state, "waiting").get("reason"):
                self.word = str(state["waiting"]["reason"])
            elif terminated is not None:
                self.word = _end_word(terminated)
                if terminated.get("exitCode", 0):
                    failure = self.word
            elif container.get("ready") and state.get("running") is not None:
                is_running = True
                self.ready += 1
        if self.word == "Completed":
            if is_running:
                self.word = "Running" if _is_true(conditions, "Ready") else "NotReady"
            elif failure:
                self.word = failure


def _end_word(terminated: Document) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_true(conditions: list[Any], type: str) -> bool:
    return any(each.get("type") == type and each.get("status") == "True" for each in conditions)


def _ready(pod: Document) -> str:
    summary = _Summary(pod)
    return f"{summary.ready}/{summary.total}"


def _restarts(pod: Document, now: float) -> str:
    summary = _Summary(pod)
    if summary.restarts and summary.last_restart:
        return f"{summary.restarts} ({age(summary.last_restart, now)} ago)"
    return str(summary.restarts)


def _ip(pod: Document) -> str:
    addresses = items_of(part(pod, "status"), "podIPs")
    return str((addresses[0].get("ip") if addresses else part(pod, "status").get("podIP")) or NONE)


def _gates(pod: Document) -> str:
    gates = items_of(part(pod, "spec"), "readinessGates")
    if not gates:
        return NONE
    conditions = items_of(part(pod, "status"), "conditions")
    return f"{sum(_is_true(conditions, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"


POD_COLUMNS = [
    NAME,
    column("Ready", _ready),
    column("Status", lambda pod: _Summary(pod).word),
    Column("Restarts", _restarts),
    AGE,
    column("IP", _ip, wide=True),
    column("Node", lambda pod: part(pod, "spec").get("nodeName") or NONE, wide=True),
    column("Nominated Node", lambda pod: part(pod, "status").get("nominatedNodeName") or NONE, wide=True),
    column("Readiness Gates", _gates, wide=True),
]
