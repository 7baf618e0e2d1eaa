"""The columns of `kubectl get pods`: status, ready containers and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.tables.ages import age
from mooring.apiserver.tables.columns import AGE, NAME, NONE, PrinterColumn, column

_COMPLETED = "Completed"


class _Containers:
    """A pod's container statuses, sorted by what they mean for its row.

    Init containers run one after the other. `reached` are those up to the first that is not done, whose index is
    `held_by`. The main containers have started when all are done, or when the pod's conditions report it.
    """

    def __init__(self, pod: Document) -> None:
        self._pod = pod
        status = part(pod, "status")
        self._sidecars = {
            each.get("name")
            for each in items_of(part(pod, "spec"), "initContainers")
            if each.get("restartPolicy") == "Always"
        }
        line = items_of(status, "initContainerStatuses")
        self.held_by = next((place for place, each in enumerate(line) if not self._lets_others_start(each)), None)
        self.reached = line if self.held_by is None else line[: self.held_by + 1]
        has_begun = self.held_by is None or _is_true(pod, "Initialized")
        self.main: list[Any] = items_of(status, "containerStatuses") if has_begun else []
        self._counting_restarts = self.main + self._reached_sidecars() if has_begun else self.reached

    def _lets_others_start(self, container: Document) -> bool:
        ended = part(container, "state").get("terminated")
        return _ended_well(ended) or self._is_started_sidecar(container)

    def _is_started_sidecar(self, container: Document) -> bool:
        return container.get("name") in self._sidecars and bool(container.get("started"))

    def _reached_sidecars(self) -> list[Any]:
        return [each for each in self.reached if each.get("name") in self._sidecars]

    def total(self) -> int:
        return len(items_of(part(self._pod, "spec"), "containers")) + len(self._sidecars)

    def ready(self) -> int:
        sidecars = (
            each
            for each in self.reached
            if self._is_started_sidecar(each) and not _ended_well(part(each, "state").get("terminated"))
        )
        return sum(bool(each.get("ready")) for each in sidecars) + sum(map(_is_serving, self.main))

    def restarts(self) -> int:
        return sum(each.get("restartCount", 0) for each in self._counting_restarts)

    def last_restart(self) -> str | None:
        ends = (part(each, "lastState", "terminated").get("finishedAt") for each in self._counting_restarts)
        return max(filter(None, ends), default=None)


def _ended_well(ended: Any) -> bool:
    return ended is not None and not ended.get("exitCode", 0)


def _is_serving(container: Document) -> bool:
    runs = part(container, "state").get("running") is not None
    return runs and bool(container.get("ready")) and not _reason(container)


def _reason(container: Document) -> str:
    """The reason why a container waits or has terminated; empty for a running one."""
    state = part(container, "state")
    ended = state.get("terminated")
    return str(part(state, "waiting").get("reason") or "") or ("" if ended is None else _end(ended))


def _end(ended: Document) -> str:
    signal, code = ended.get("signal"), ended.get("exitCode", 0)
    return str(ended.get("reason") or (f"Signal:{signal}" if signal else f"ExitCode:{code}"))


def _is_true(pod: Document, type: str) -> bool:
    conditions = items_of(part(pod, "status"), "conditions")
    return any(each.get("type") == type and each.get("status") == "True" for each in conditions)


# The status of a pod: the first of these reasons that is not empty.


def _terminating(pod: Document) -> str:
    status = part(pod, "status")
    if not part(pod, "metadata").get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _initializing(pod: Document, containers: _Containers) -> str:
    if containers.held_by is None:
        return ""
    reason = _reason(containers.reached[-1])
    if reason in ("", "PodInitializing"):
        reason = f"{containers.held_by}/{len(items_of(part(pod, 'spec'), 'initContainers'))}"
    return f"Init:{reason}"


def _gated(pod: Document) -> str:
    word = "SchedulingGated"
    conditions = items_of(part(pod, "status"), "conditions")
    return word if any(each.get("type") == "PodScheduled" and each.get("reason") == word for each in conditions) else ""


def _reasons(pod: Document, containers: _Containers) -> Iterator[str]:
    yield from map(_reason, containers.main)
    yield _initializing(pod, containers)
    yield _gated(pod)
    yield str(part(pod, "status").get("reason") or "")
    yield str(part(pod, "status").get("phase") or "")


def _status(pod: Document) -> str:
    containers = _Containers(pod)
    status = _terminating(pod) or next(filter(None, _reasons(pod, containers)), "")
    return _beside_the_completed(pod, containers) if status == _COMPLETED else status


def _beside_the_completed(pod: Document, containers: _Containers) -> str:
    """A container has completed: the state of the others decides."""
    serves = any(map(_is_serving, containers.main))
    if serves and _is_true(pod, "Ready"):
        return "Running"
    failed = (each for each in containers.main if part(each, "state", "terminated").get("exitCode", 0))
    failure = next((_reason(each) for each in failed), "")
    return failure or ("NotReady" if serves else _COMPLETED)


def _ready(pod: Document) -> str:
    containers = _Containers(pod)
    return f"{containers.ready()}/{containers.total()}"


def _restarts(pod: Document, now: float) -> str:
    containers = _Containers(pod)
    count, last = containers.restarts(), containers.last_restart()
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)


def _ip(pod: Document) -> str:
    addresses = items_of(part(pod, "status"), "podIPs")
    return str((addresses[0].get("ip") if addresses else part(pod, "status").get("podIP")) or NONE)


def _gates(pod: Document) -> str:
    gates = items_of(part(pod, "spec"), "readinessGates")
    return f"{sum(_is_true(pod, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}" if gates else NONE


POD_COLUMNS = [
    NAME,
    column("Ready", _ready),
    column("Status", _status),
    PrinterColumn("Restarts", _restarts),
    AGE,
    column("IP", _ip, wide=True),
    column("Node", lambda pod: part(pod, "spec").get("nodeName") or NONE, wide=True),
    column("Nominated Node", lambda pod: part(pod, "status").get("nominatedNodeName") or NONE, wide=True),
    column("Readiness Gates", _gates, wide=True),
]
