"""Shows the shadow each change of a pod of theirs before state and queue hear of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.client import Feed
from mooring.objects.core import Pod
from mooring.scheduler.shadow.shadow import Shadow
from mooring.state import State

_log = Log("shadow")


class ShadowFeed:
    """Stands before the scheduler's own feed of pods."""

    def __init__(self, pods: Feed[Pod], shadow: Shadow, state: State, schedulers: Collection[str]) -> None:
        self._pods = pods
        self._shadow = shadow
        self._state = state
        self._schedulers = schedulers
        self._is_first = True

    def listed(self, pods: list[Pod]) -> None:
        """Bindings that a list shows came in an order that nobody knows; before the first list they are history."""
        for pod in self._theirs(pods):
            if not pod.spec.node_name:
                _contained(self._shadow.shown, pod)
            elif not self._is_first:
                _contained(self._shadow.missed, pod, self._state.pod(pod.uid) is None)
        _contained(self._shadow.absent, [pod.uid for pod in pods])
        self._is_first = False
        self._pods.listed(pods)

    def changed(self, pod: Pod) -> None:
        if pod.spec.scheduler_name not in self._schedulers:
            self._pods.changed(pod)
        elif not pod.spec.node_name:
            _contained(self._shadow.shown, pod)
            self._pods.changed(pod)
        elif self._shadow.is_pending(pod.uid) or self._state.pod(pod.uid) is None:
            self._bound(pod)
        else:
            self._pods.changed(pod)

    def deleted(self, pod: Pod) -> None:
        _contained(self._shadow.gone, pod.uid)
        self._pods.deleted(pod)

    def _bound(self, pod: Pod) -> None:
        applied: list[Pod] = []

        def apply() -> None:
            applied.append(pod)
            self._pods.changed(pod)

        _contained(self._shadow.bound, pod, apply)
        if not applied:
            apply()

    def _theirs(self, pods: list[Pod]) -> list[Pod]:
        return [pod for pod in pods if pod.spec.scheduler_name in self._schedulers]


def _contained(look: Callable[..., None], *what: Any) -> None:
    """A bug in comparing, or a terminal that is gone, must not end the watch."""
    try:
        look(*what)
    except Exception as error:
        _log.error("A comparison failed; going on without it", err=described(error))
