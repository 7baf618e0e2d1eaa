"""Lets a scheduler place pods one at a time and writes down all that can be seen of each decision.

A second scheduler that follows such a record meets every pod in the same cluster: after each pod the cluster is made as
it was after that pod in the record, so that one difference, or one tie broken the other way, does not cause the next.
A pod that is refused goes away again: none wakes later. A pod that was placed goes after a while, to keep the cluster
neither full nor empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.cli.programs import Program
from tests.real_apiserver.cluster import PODS, Cluster, Document

SCORED = re.compile(r'"Plugin scored node for pod" pod="default/(\S+)" plugin="(\S+)" node="(\S+)" score=(-?\d+)')

NOMINATIONS = '{.metadata.name} {.status.nominatedNodeName}{"\\n"}'
"""What is true only for a moment: read from a watch."""

LIFE = 20
"""How many pods come before one that was placed goes."""

Scores = dict[str, dict[str, int]]
"""node → plugin → weighted score; plugins that give nothing are left out."""


@dataclass
class Seen:
    """One pod's decision. `refusal` is its first message; it may have been placed later, with `victims` evicted."""

    pod: str
    node: str = ""
    refusal: str = ""
    victims: frozenset[str] = frozenset()
    nominations: tuple[str, ...] = ()
    """the nodes that were kept for it, in order"""
    condition: tuple[str, str] = ("", "")
    """reason and message of a pod that got no node"""
    events: frozenset[tuple[str, ...]] = frozenset()
    """events about it and its victims: type, reason, action, reporter and message"""
    placed: Mapping[str, str] = field(default_factory=dict)
    """pod → node, of the whole cluster, afterwards"""
    scores: Scores = field(default_factory=dict)

    @property
    def best(self) -> set[str]:
        """The nodes with the highest score; where nothing was scored, the only node there was."""
        totals = {node: sum(of.values()) for node, of in self.scores.items()}
        return {node for node, total in totals.items() if total == max(totals.values())} or {self.node}


class Recording:
    def __init__(self, cluster: Cluster, pods: Sequence[Document]) -> None:
        self._cluster = cluster
        self._documents = {pod["metadata"]["name"]: pod for pod in pods}

    def run(self, scheduler: Program, follow: Sequence[Seen] = ()) -> list[Seen]:
        record = []
        names = list(self._documents)
        with self._cluster.watch(NOMINATIONS) as watch:
            for number, name in enumerate(names):
                if number >= LIFE and (old := names[number - LIFE]) in self._placed():
                    self._remove(old)
                record.append(self._step(name))
                if follow:
                    self._make(follow[number].placed)
            watch.mentions(f"{names[-1]} ")
        for seen in record:
            seen.nominations = nominations_in(watch, seen.pod)
        scores = scores_in(scheduler)
        for seen in record:
            seen.scores = scores.get(seen.pod, {})
        return record

    def _step(self, name: str) -> Seen:
        before = set(self._placed())
        self._cluster.api.create(PODS, self._documents[name])
        seen = Seen(name)
        pod = self._cluster.until(lambda: self._outcome(name), what=f"a decision about {name}")
        seen.node = pod["spec"].get("nodeName", "")
        if seen.node:
            self._cluster.event(name, "Scheduled")
            self._cluster.running(name)
        else:
            self._cluster.event(name, "FailedScheduling")
            seen.condition = _scheduled_condition(pod)
            self._remove(name)
        seen.placed = self._placed()
        seen.victims = frozenset(before - set(seen.placed))
        refusals = self._cluster.events(name, "FailedScheduling")
        first = sorted(refusals, key=lambda each: str(each["eventTime"]))[:1]
        seen.refusal = first[0]["message"] if first else ""
        events = [*first, *self._cluster.events(name, "Scheduled")]
        events += [self._cluster.event(victim, "Preempted") for victim in seen.victims]
        seen.events = frozenset(_words(each, pod) for each in events)
        return seen

    def _outcome(self, name: str) -> Document | None:
        """The pod, once it has a node or was refused without a prospect of one."""
        pod: Document = self._cluster.api.get(f"{PODS}/{name}")
        status = pod.get("status", {})
        refused = any(
            each["type"] == "PodScheduled" and each["status"] == "False" for each in status.get("conditions", ())
        )
        return pod if pod["spec"].get("nodeName") or (refused and not status.get("nominatedNodeName")) else None

    def _placed(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self._cluster.pods()}

    def _make(self, wanted: Mapping[str, str]) -> None:
        """Make the cluster as it was in the record."""
        placed = self._placed()
        differing = {name for name in wanted.keys() | placed.keys() if wanted.get(name) != placed.get(name)}
        for name in differing & placed.keys():
            self._remove(name)
        for name in differing & wanted.keys():
            document = self._documents[name]
            spec = document["spec"] | {"nodeName": wanted[name]}
            self._cluster.api.create(PODS, document | {"spec": spec})
            self._cluster.running(name)

    def _remove(self, name: str) -> None:
        self._cluster.api.delete(f"{PODS}/{name}")
        self._cluster.gone(name)


def _scheduled_condition(pod: Document) -> tuple[str, str]:
    for each in pod["status"].get("conditions", ()):
        if each["type"] == "PodScheduled":
            return each.get("reason", ""), each.get("message", "")
    return "", ""


def _words(event: Document, pod: Document) -> tuple[str, ...]:
    """An event without what may differ: the pod's uid, and which of several equal nodes it is about."""
    text = event["message"].replace(pod["metadata"]["uid"], "UID")
    text = re.sub(r"(?<= to )node-\d+$", "NODE", text)
    return event["type"], event["reason"], event["action"], event["reportingComponent"], text


def nominations_in(watch: Program, pod: str) -> tuple[str, ...]:
    """The nodes that were kept for the pod, each once in a row."""
    nodes = [line.partition(" ")[2] for line in watch.out if line.startswith(f"{pod} ")]
    return tuple(node for before, node in pairwise(["", *nodes]) if node not in ("", before))


def scores_in(scheduler: Program) -> dict[str, Scores]:
    """pod → what its nodes were worth, from the log at -v=10, which both schedulers write alike."""
    found: dict[str, Scores] = {}
    for line in [*scheduler.err, *scheduler.out]:
        if match := SCORED.search(line):
            pod, plugin, node, score = match.groups()
            of_node = found.setdefault(pod, {}).setdefault(node, {})
            if int(score):
                of_node[plugin] = int(score)
    return found
