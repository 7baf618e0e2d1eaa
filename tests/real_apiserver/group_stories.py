"""Stories of pod groups, each in a namespace of its own, and all that can be seen of how one ended.

A story creates objects and waits for what must come of them. Of equal nodes a scheduler may choose any: the outcome has
the racks of a group that must be in one, and the nodes only where the story leaves one choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.real_apiserver.cluster import PRIORITIES, Cluster, Document
from tests.real_apiserver.control_plane import ApiError

from mooring.objects.pod_groups import GANG_COMPLETED

NODES = {"node-a": ("rack-1", "4"), "node-b": ("rack-1", "2"), "node-c": ("rack-2", "4"), "node-d": ("rack-2", "4")}
GANG, LAST = "training", "last"
BOUND = "Bound"
ALMOST = {"node-a": "3900m", "node-b": "1900m", "node-c": "3900m", "node-d": "3900m"}
"""Fills a node but for a small pod."""
IN_ONE_RACK = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
BASIC: Document = {"schedulingPolicy": {"basic": {}}}

Story = Callable[["Stage"], None]


class Stage:
    """A namespace in which a story happens, on nodes that all stories share."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._groups = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups"
        self._uids: dict[str, str] = {}
        self._created: list[str] = []
        self.shows_nodes = False
        """Whether the outcome has the nodes on which pods run."""
        self.shows_messages = True
        """Whether it has the last message of each pod, and not only the first."""
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    # What happens.

    def group(self, name: str = GANG, *, priority: int | None = None, **spec: Any) -> None:
        if priority is not None:
            spec["priorityClassName"] = self._class(priority)
        self._create(self._groups, {"metadata": {"name": name}, "spec": spec})

    def pod(self, name: str, cpu: str, *, priority: int, group: str | None = GANG, **spec: Any) -> None:
        if group is not None:
            spec["schedulingGroup"] = {"podGroupName": group}
        if "priorityClassName" not in spec:
            spec["priorityClassName"] = self._class(priority)
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
        document = {
            "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
        }
        self._create(self._pods, document)
        self._created.append(name)

    def members(self, *cpus: str, group: str = GANG, priority: int = 100, **spec: Any) -> list[str]:
        """Pods of a group, the first one with the highest priority; gives their names."""
        names = [f"{group}-{number}" for number in range(len(cpus))]
        for number, (name, cpu) in enumerate(zip(names, cpus, strict=True)):
            self.pod(name, cpu, priority=priority - number, group=group, **spec)
        return names

    def runs(self, name: str, node: str, cpu: str, *, priority: int = 0, group: str | None = None) -> None:
        """A pod that runs already."""
        self.pod(name, cpu, priority=priority, group=group, nodeName=node)
        self._until(lambda: self._get(name)["status"].get("phase") == "Running", f"{name} to run")

    def delete(self, name: str) -> None:
        self.cluster.api.delete(f"{self._pods}/{name}")
        self.gone(name)

    def _create(self, path: str, document: Document) -> None:
        def create() -> Document | None:
            try:
                created: Document = self.cluster.api.create(path, document)
            except ApiError as error:
                if "no PriorityClass" not in str(error):
                    raise
                return None  # admission has not seen it yet
            return created

        name = document["metadata"]["name"]
        self._uids[self.cluster.until(create, what=f"{name} to be created")["metadata"]["uid"]] = name

    def _class(self, priority: int, **more: Any) -> str:
        name = f"priority-{priority}" + "".join(f"-{value.lower()}" for value in more.values())
        try:
            self.cluster.api.create(PRIORITIES, {"metadata": {"name": name}, "value": priority, **more})
        except ApiError as error:
            if error.code != 409:
                raise
        return name

    def meek(self, priority: int) -> str:
        """A priority class whose pods never preempt."""
        return self._class(priority, preemptionPolicy="Never")

    # What is waited for.

    def bound(self, *names: str) -> None:
        """Until they have a node, and an event."""
        for name in names:
            self._until(lambda name=name: self._get(name)["spec"].get("nodeName"), f"a node for {name}")  # type: ignore[misc]
            self._event(name, "Scheduled")

    def preempted(self, *names: str) -> None:
        self.gone(*names)
        for name in names:
            self._event(name, "Preempted")

    def gone(self, *names: str) -> None:
        self._until(lambda: not set(names) & self._documents().keys(), f"the end of {names}")

    def refused(self, *names: str) -> None:
        """Until they have a condition with a message, and an event."""
        for name in names:
            self._until(lambda name=name: _condition(self._get(name)).get("message"), f"{name} to be refused")  # type: ignore[misc]
            self._event(name, "FailedScheduling")

    def reported(self, status: str, *, group: str = GANG) -> None:
        """Until the condition of the group has this status: with False it may be one that a later cycle changes."""

        def look() -> bool:
            return any(each[1] == status for each in self._conditions().get(group, ()))

        self._until(look, f"a condition of {group} that is {status}")

    def _event(self, name: str, reason: str) -> None:
        """Schedulers write it beside what it is about."""

        def look() -> bool:
            return any(event["regarding"]["name"] == name and event["reason"] == reason for event in self._recorded())

        self._until(look, f"an event {reason} about {name}")

    def others_are_scheduled(self) -> None:
        """A pod that comes last has a node: by then the scheduler has seen all pods, even those that it cannot try.

        It overtakes pods that can be tried: a story waits for what becomes of them.
        """
        if LAST in self._created:
            self.delete(LAST)
        self.pod(LAST, "10m", priority=1000, group=None)
        self.bound(LAST)

    # What there is in the end.

    def outcome(self) -> Document:
        pods = {name: pod for name, pod in self._documents().items() if name != LAST}
        return {
            "groups": self._conditions(),
            "pods": {name: self._seen(pod) for name, pod in sorted(pods.items())},
            "gone": sorted(set(self._created) - {*pods, LAST}),
            "racks": self._racks(pods.values()),
            "nodes": sorted(pod["spec"].get("nodeName", "") for pod in pods.values()) if self.shows_nodes else (),
            "events": self._events(),
        }

    def end(self) -> None:
        self.cluster.api.delete(self._pods)
        self._until(lambda: not self._documents(), "the end of all pods")

    def _seen(self, pod: Document) -> tuple[str, str, str]:
        reason, message = seen(pod)
        if not self.shows_messages:
            return reason, "", ""
        return reason, message, "" if reason == BOUND else pod["status"].get("nominatedNodeName", "")

    def _racks(self, pods: Any) -> dict[str, list[str]]:
        """Of groups that must be in one rack."""
        found: dict[str, set[str]] = {}
        for group in self.cluster.api.items(self._groups):
            if "schedulingConstraints" in group["spec"]:
                found[group["metadata"]["name"]] = racks = set()
                for pod in pods:
                    name = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
                    if name == group["metadata"]["name"] and (node := pod["spec"].get("nodeName")):
                        racks.add(NODES[node][0])
        return {name: sorted(racks) for name, racks in found.items()}

    def _events(self) -> list[tuple[str, ...]]:
        """About pods and groups, the first for each reason; uids are replaced by names.

        kube-scheduler tries a group that waits for its victims many times a second, and may report what is in between.
        """
        found: dict[tuple[str, ...], str] = {}
        for event in sorted(self._recorded(), key=lambda event: event["eventTime"] or ""):
            about = event["regarding"]
            if about["name"] != LAST:
                what = about["kind"], about["name"], event["type"], event["reason"]
                found.setdefault(what, self._named(event["note"]))
        return sorted((*what, note) for what, note in found.items())

    def _recorded(self) -> list[Document]:
        """Events of the scheduler."""
        events = self.cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        return [event for event in events if event["reportingController"] in ("default-scheduler", "other")]

    def _named(self, note: str) -> str:
        note = note.replace(f"{self.namespace}/", "")
        for uid, name in self._uids.items():
            note = note.replace(uid, name)
        return re.sub(r" to node-.$", " to its node", note)

    def _conditions(self) -> dict[str, list[tuple[str, str, str, str]]]:
        return {group["metadata"]["name"]: conditions(group) for group in self.cluster.api.items(self._groups)}

    def _documents(self) -> dict[str, Document]:
        return {pod["metadata"]["name"]: pod for pod in self.cluster.api.items(self._pods)}

    def _get(self, name: str) -> Document:
        found: Document = self.cluster.api.get(f"{self._pods}/{name}")
        return found

    def _until(self, look: Callable[[], object], what: str) -> None:
        self.cluster.until(look, what=f"{what} in {self.namespace}", seen=self.outcome)


def seen(pod: Document) -> tuple[str, str]:
    """Reason and message of a pod without a node. Of equal nodes any may be chosen: one that has one is `Bound`."""
    if pod["spec"].get("nodeName"):
        return BOUND, ""
    condition = _condition(pod)
    return condition.get("reason", ""), condition.get("message", "")


def conditions(group: Document) -> list[tuple[str, str, str, str]]:
    """Without the one that Mooring alone writes, for itself (docs/deviations.md)."""
    found = group.get("status", {}).get("conditions", ())
    return [
        (each["type"], each["status"], each["reason"], each["message"])
        for each in found
        if each["type"] != GANG_COMPLETED
    ]


def _condition(pod: Document) -> Document:
    found = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return found[0] if found else {}


def a_gang(count: int, **more: Any) -> Document:
    return {"schedulingPolicy": {"gang": {"minCount": count}}, **more}


def tried(spec: Document, *cpus: str, refused: str = "", running: Sequence[tuple[str, str]] = ()) -> Story:
    """A group of such pods is created, and tried. Pods with the CPU `refused` get no node, and all others one."""

    def story(stage: Stage) -> None:
        for number, (node, cpu) in enumerate(running):
            stage.runs(f"running-{number}", node, cpu)
        stage.group(**spec)
        for name, cpu in zip(stage.members(*cpus), cpus, strict=True):
            (stage.refused if cpu == refused else stage.bound)(name)
        stage.reported("False" if {*cpus} == {refused} else "True")

    return story


def a_gang_in_part(stage: Stage) -> None:
    stage.group(**a_gang(3))
    stage.members("1", "1")


def a_group_that_comes_later(stage: Stage) -> None:
    stage.members("1", "1")
    stage.others_are_scheduled()
    stage.group(**a_gang(2))
    stage.bound(f"{GANG}-0", f"{GANG}-1")
    stage.reported("True")


def a_pod_is_replaced(stage: Stage) -> None:
    stage.group(**a_gang(2))
    stage.members("1", "1")
    stage.bound(f"{GANG}-0", f"{GANG}-1")
    stage.reported("True")
    stage.delete(f"{GANG}-0")
    stage.pod("new", "1", priority=1)
    stage.bound("new")


def two_schedulers(stage: Stage) -> None:
    stage.group(**a_gang(2))
    stage.pod("one", "1", priority=2)
    stage.pod("two", "1", priority=1, schedulerName="other")
    stage.refused("one", "two")


def nodes_are_full(stage: Stage, *, but: Sequence[str] = ()) -> None:
    """Each node runs a pod whose priority is higher than that of the one before; none on the nodes `but`."""
    stage.shows_nodes = True
    for priority, (node, cpu) in enumerate(ALMOST.items(), start=1):
        if node not in but:
            stage.runs(f"low-{node}", node, cpu, priority=priority)


def a_group_preempts_pods(stage: Stage) -> None:
    nodes_are_full(stage)
    stage.group(priority=50, **a_gang(2))
    stage.members("3", "3")
    stage.preempted("low-node-a", "low-node-c")
    stage.bound(f"{GANG}-0", f"{GANG}-1")
    stage.reported("True")


def a_group_preempts_a_group(stage: Stage) -> None:
    stage.shows_nodes = True
    stage.group("victims", priority=5, disruptionMode="PodGroup", **a_gang(2))
    stage.runs("victim-a", "node-a", ALMOST["node-a"], priority=9, group="victims")
    stage.runs("victim-b", "node-b", ALMOST["node-b"], priority=9, group="victims")
    for node in ("node-c", "node-d"):
        stage.runs(f"high-{node}", node, ALMOST[node], priority=90)
    stage.group(priority=50, **a_gang(1))
    stage.members("3")
    stage.preempted("victim-a", "victim-b")
    stage.bound(f"{GANG}-0")
    stage.reported("True")


def pods_of_a_group_are_preempted_alone(stage: Stage) -> None:
    stage.shows_nodes = True
    stage.group("victims", priority=5, disruptionMode="Pod", **a_gang(2))
    stage.runs("victim-a", "node-a", ALMOST["node-a"], priority=9, group="victims")
    stage.runs("victim-b", "node-b", ALMOST["node-b"], priority=9, group="victims")
    for node in ("node-c", "node-d"):
        stage.runs(f"high-{node}", node, ALMOST[node], priority=90)
    stage.group(priority=50, **a_gang(1))
    stage.members("3")
    stage.preempted("victim-a")
    stage.bound(f"{GANG}-0")
    stage.reported("True")


def a_member_never_preempts(stage: Stage) -> None:
    nodes_are_full(stage)
    stage.group(priority=50, **a_gang(2))
    stage.pod("bold", "3", priority=100)
    stage.pod("meek", "3", priority=99, priorityClassName=stage.meek(99))
    stage.reported("False")
    stage.refused("bold", "meek")


def a_group_without_victims(stage: Stage) -> None:
    nodes_are_full(stage)
    stage.group(**a_gang(2))
    stage.members("3", "3")
    stage.reported("False")
    stage.refused(f"{GANG}-0", f"{GANG}-1")


def a_constrained_group_on_full_nodes(stage: Stage) -> None:
    nodes_are_full(stage)
    stage.group(**a_gang(2, **IN_ONE_RACK))
    stage.members("3", "3")
    stage.reported("False")
    stage.refused(f"{GANG}-0", f"{GANG}-1")


def a_constrained_group_of_high_priority(stage: Stage) -> None:
    nodes_are_full(stage)
    stage.group(priority=50, **a_gang(2, **IN_ONE_RACK))
    stage.members("3", "3")
    stage.reported("False")
    stage.refused(f"{GANG}-0", f"{GANG}-1")


def members_preempt(stage: Stage) -> None:
    nodes_are_full(stage)
    stage.group(**a_gang(2))
    stage.members("3", "3")
    stage.preempted("low-node-a", "low-node-c")
    stage.bound(f"{GANG}-0", f"{GANG}-1")
    stage.reported("True")


def a_member_preempts_in_vain(stage: Stage) -> None:
    """There is room for one of them once the pod on node-a is gone, and for no other one."""
    nodes_are_full(stage, but=("node-b", "node-c", "node-d"))
    for node in ("node-b", "node-c", "node-d"):
        stage.runs(f"high-{node}", node, ALMOST[node], priority=500)
    stage.group(**a_gang(2))
    stage.members("3", "3")
    stage.preempted("low-node-a")
    stage.reported("False")
    stage.refused(f"{GANG}-0", f"{GANG}-1")
    # kube-scheduler tries one of them alone while it holds the other one back for its victim: any message may be last.
    stage.shows_messages = False


WITHOUT_GROUP_PREEMPTION: dict[str, Story] = {
    "G21, G24: a gang that fits": tried(a_gang(3), "1", "1", "1"),
    "G14, G22: a gang that is too large": tried(a_gang(4), "3", "3", "3", "3", refused="3"),
    "G28: more pods than the gang needs, of which one does not fit": tried(a_gang(2), "3", "3", "9", refused="9"),
    "G26: a gang whose pods are not all there": a_gang_in_part,
    "G19: a group that is no gang": tried(BASIC, "9", "2", "2", refused="9"),
    "G31: a gang that fits one rack": tried(a_gang(2, **IN_ONE_RACK), "3", "3"),
    "G34: of two racks the fuller one": tried(a_gang(2, **IN_ONE_RACK), "1", "1", running=[("node-d", "2")]),
    "G33: a gang that fits no rack": tried(a_gang(2, **IN_ONE_RACK), "9", "9", refused="9"),
    "G16, G26: the PodGroup is created after its pods": a_group_that_comes_later,
    "G28: a pod of a running gang is replaced": a_pod_is_replaced,
    "G12: members of two schedulers": two_schedulers,
    "G18, G21: members preempt, and the gang fits then": members_preempt,
    "G18: a member preempts for a gang that does not fit": a_member_preempts_in_vain,
    "G36: members of a constrained gang do not preempt": a_constrained_group_on_full_nodes,
}
WITH_GROUP_PREEMPTION: dict[str, Story] = {
    "G37, G40, G41: a gang preempts pods of lower priority, the least important ones": a_group_preempts_pods,
    "G40, G42: a gang preempts another gang as a whole": a_group_preempts_a_group,
    "G40: with disruptionMode Pod only the pod that is in the way": pods_of_a_group_are_preempted_alone,
    "G39: a member whose preemptionPolicy is Never": a_member_never_preempts,
    "G40: a gang of no higher priority than the running pods": a_group_without_victims,
    "G36, G38: a constrained gang does not preempt": a_constrained_group_of_high_priority,
}
