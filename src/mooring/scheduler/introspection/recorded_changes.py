"""State, nominations and pod feed of a scheduler that records: each change passes the recorder first.

Nodes, assumed pods and nominations are recorded where they enter the state, because the scheduler's own acts are among
them; pods where the watch delivers them, because the state keeps less of a pod than `decide` reads.
"""

from __future__ import annotations

from typing import Any

from mooring.config import Configuration
from mooring.config.as_v1 import as_v1
from mooring.framework.events import ClusterEvent
from mooring.objects import Node, Pod
from mooring.objects.object_store import Present
from mooring.objects.placed import PlacedPod
from mooring.recording import Recorder
from mooring.scheduler.plugin_runtime.assembly import Assembly
from mooring.scheduler.watching.feeds import PodFeed
from mooring.scheduler.watching.informers import Publish
from mooring.state import State
from mooring.state.nominations import Nominations
from mooring.state.state import counts_alike


class RecordingNominations(Nominations):
    """Records which pod is nominated where."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def set(self, pod: Pod, node: str) -> None:
        super().set(pod, node)
        self.recorder.nominated(pod.uid, node)

    def remove(self, uid: str) -> str | None:
        node = super().remove(uid)
        if node is not None:
            self.recorder.nominated(uid, "")
        return node


class RecordingState(State):
    """Records nodes, and the pods that the scheduler assumes and forgets."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.nominations = RecordingNominations(recorder)

    def set_node(self, node: Node) -> Node | None:
        self.recorder.set(node)
        return super().set_node(node)

    def remove_node(self, name: str) -> Node | None:
        self.recorder.deleted(Node, name)
        return super().remove_node(name)

    def set_pod(self, pod: PlacedPod) -> PlacedPod | None:
        old = super().set_pod(pod)
        if old is not None and not counts_alike(old, pod):
            self.recorder.moved(pod.uid)
        return old

    def assume(self, pod: Pod, node: str, at: float) -> PlacedPod:
        record = super().assume(pod, node, at)
        self.recorder.assumed(pod.uid, node)
        return record

    def forget(self, uid: str) -> PlacedPod | None:
        forgotten = super().forget(uid)
        if forgotten is not None:
            self.recorder.forgotten(uid)
        return forgotten


class RecordingPodFeed(PodFeed):
    """Records the pods of the watch."""

    def __init__(self, recorder: Recorder, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.recorder = recorder

    def listed(self, present: Present) -> None:
        self.recorder.listed(Pod, present)
        super().listed(present)

    def changed(self, pod: Pod) -> str:
        if pod.spec.node_name and self._state.is_assumed(pod.uid) and self._is_confirmation(pod):
            labels = pod.metadata.labels
            self.recorder.confirmed(pod, None if labels == self._waiting[pod.uid].metadata.labels else labels)
        else:
            self.recorder.set(pod)
        return super().changed(pod)

    def _is_confirmation(self, pod: Pod) -> bool:
        """Whether nothing is new but node, status and labels: a generation is that of a spec."""
        if (known := self._waiting.get(pod.uid)) is None:
            return False
        old, new = known.metadata, pod.metadata
        return (
            old.generation == new.generation != 0
            and old.annotations == new.annotations
            and old.owner_references == new.owner_references
            and old.deletion_timestamp == new.deletion_timestamp
        )

    def deleted(self, pod: Pod) -> str:
        self.recorder.deleted(Pod, pod.key, pod.uid)
        return super().deleted(pod)


def record_configuration(recorder: Recorder, configuration: Configuration, assembly: Assembly) -> None:
    """What decides from now on."""
    kinds = {kind.KIND.name for kinds in assembly.kinds.values() for kind in kinds}
    recorder.configured(as_v1(configuration), assembly.profiles, kinds)


def recording_publish(publish: Publish, recorder: Recorder) -> Publish:
    """What the plugins' object stores do with a change: also record it."""

    def record(event: ClusterEvent, old: Any, new: Any) -> None:
        if new is not None:
            recorder.set(new)
        else:
            recorder.deleted(type(old), old.key, old.uid)
        publish(event, old, new)

    return record
