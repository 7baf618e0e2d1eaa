"""DaemonSets: one pod on every node that will have it."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured
from mooring.apiserver.strategies.base import set_default
from mooring.apiserver.strategies.workloads import WorkloadStrategy


class DaemonSetStrategy(WorkloadStrategy):
    word = "daemonset"
    scales = False

    def default_spec(self, spec: Document) -> None:
        update = ensured(spec, "updateStrategy")
        set_default(update, "type", "RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = ensured(update, "rollingUpdate")
            set_default(rolling, "maxUnavailable", 1)
            set_default(rolling, "maxSurge", 0)
        set_default(spec, "revisionHistoryLimit", 10)

    def initial_status(self, document: Document) -> Document:
        names = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        return dict.fromkeys(names, 0)
