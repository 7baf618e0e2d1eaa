"""What the shadow sees of the watch of pods: each event before state and queue are updated, and once more after."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.objects.core import Pod
from mooring.objects.object_store import Present
from mooring.scheduler.shadow.shadow import Shadow
from mooring.state import State

_log = Log("shadow")


class BeforeUpdate:
    """Compares what the other scheduler did with the state just before it."""

    def __init__(self, shadow: Shadow, state: State, schedulers: Collection[str]) -> None:
        self._shadow = shadow
        self._state = state
        self._schedulers = schedulers
        self._is_first = True

    def found(self, pod: Pod) -> None:
        """A list does not show in which order bindings came; before the first list they are history."""
        if pod.spec.scheduler_name not in self._schedulers:
            return
        if not pod.spec.node_name:
            _contained(self._shadow.shown, pod)
        elif not self._is_first:
            _contained(self._shadow.missed, pod, self._state.pod(pod.uid) is None)

    def listed(self, present: Present) -> None:
        _contained(self._shadow.absent, present.values())
        self._is_first = False

    def changed(self, pod: Pod) -> None:
        if pod.spec.scheduler_name not in self._schedulers:
            return
        if not pod.spec.node_name:
            _contained(self._shadow.shown, pod)
        elif self._shadow.is_pending(pod.uid) or self._state.pod(pod.uid) is None:
            _contained(self._shadow.bound, pod)

    def deleted(self, pod: Pod) -> None:
        _contained(self._shadow.gone, pod.uid)


class AfterUpdate:
    """Reconsiders open differences once a binding counts in the state."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def found(self, pod: Pod) -> None: ...

    def listed(self, present: Present) -> None: ...

    def changed(self, pod: Pod) -> None:
        _contained(self._shadow.applied, pod.uid)

    def deleted(self, pod: Pod) -> None: ...


def _contained(observe: Callable[..., None], *arguments: Any) -> None:
    """A bug in comparing, or a terminal that is gone, must not end the watch."""
    try:
        observe(*arguments)
    except Exception as error:
        _log.error("Comparison failed", err=described(error))
