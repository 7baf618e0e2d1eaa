"""A scheduler in a bad world: what can happen to it and to its network, and what must hold whatever happened.

Pods of two priorities come and go on nodes with room for so many. A seed decides everything that is left to chance.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.cli.programs import Program
from tests.real_apiserver.bad_network import BadNetwork
from tests.real_apiserver.cluster import LEASES, PODS, Cluster, Document
from tests.real_apiserver.control_plane import SCHEDULER

NODES, PER_NODE = 3, 8
CPU = "500m"  # an eighth of a node
LOW, HIGH = "low", "high"
PRIORITY = {LOW: 10, HIGH: 1000}
# Longer than an API server takes to start again on a busy machine. No test waits for it to run out.
ELECTION = (
    "--leader-elect=true",
    "--leader-elect-lease-duration=200s",
    "--leader-elect-renew-deadline=180s",
    "--leader-elect-retry-period=1s",
)


class Trouble:
    """One scheduler and what befalls it. `start` comes before everything else."""

    def __init__(self, cluster: Cluster, network: BadNetwork, seed: int) -> None:
        self.cluster, self.network = cluster, network
        self.chance = Random(seed)
        self.kubeconfig = cluster.control_plane.write_kubeconfig(SCHEDULER, cluster.home / "far", port=network.port)
        self._made = 0
        self._where: dict[str, str] = {}

    def start(self) -> None:
        for name, value in PRIORITY.items():
            self.cluster.priority(name, value)
        self.kubelets = self.cluster.nodes(NODES, "-v=2")
        self.scheduler = self._start()

    def _start(self) -> Program:
        program = self.cluster.starting_scheduler(*ELECTION, f"--kubeconfig={self.kubeconfig}")
        program.ready()
        return program

    # Faults.

    def connections_are_cut(self) -> None:
        self.network.cut()

    def responses_are_torn(self) -> None:
        """Each watch, and whatever else is under way, ends in the middle of a line."""
        self.network.tear()

    def the_scheduler_is_killed(self) -> None:
        self.scheduler.process.kill()
        assert self.scheduler.ended() == -signal.SIGKILL
        self._give_the_lease_to("")  # no holder: the new one need not wait until it expires
        self.scheduler = self._start()

    def the_scheduler_is_restarted(self) -> None:
        """It gives its lease back by itself."""
        assert self.scheduler.end() == 0, self.scheduler.written()
        self.scheduler = self._start()

    def the_scheduler_sleeps(self) -> None:
        """The world goes on meanwhile; what it then decides it decides late."""
        self.scheduler.process.send_signal(signal.SIGSTOP)
        self.some_come_and_some_go()
        self.scheduler.process.send_signal(signal.SIGCONT)

    def the_lease_is_lost(self) -> None:
        self._give_the_lease_to("usurper")
        assert self.scheduler.ended() == 1, self.scheduler.written()
        self._give_the_lease_to("")
        self.scheduler = self._start()

    def _give_the_lease_to(self, holder: str) -> None:
        self.cluster.api.merge(f"{LEASES}/kube-scheduler", {"spec": {"holderIdentity": holder}})

    def the_api_server_is_killed(self) -> None:
        self.cluster.control_plane.kill_server()
        self.cluster.control_plane.start_server()

    # What goes on meanwhile.

    def some_come_and_some_go(self) -> None:
        for _ in range(self.chance.randint(3, 8)):
            priority = self.chance.choice([LOW, LOW, HIGH])
            self.cluster.pod(f"pod-{self._made}", cpu=CPU, priorityClassName=priority)
            self._made += 1
        names = sorted(pod["metadata"]["name"] for pod in self.cluster.pods())
        for name in self.chance.sample(names, min(len(names), self.chance.randint(1, 5))):
            self.cluster.api.delete_if_there(f"{PODS}/{name}")

    # What must hold.

    def check(self) -> None:
        """At any moment: no pod has moved, no node holds more than it has room for, and no pod has been given up."""
        for program in (self.scheduler, self.kubelets):
            assert program.process.poll() is None, f"it ended by itself:\n{program.written()}"
        placed = [pod for pod in self.cluster.pods() if pod["spec"].get("nodeName")]
        for pod in placed:
            node = pod["spec"]["nodeName"]
            assert self._where.setdefault(pod["metadata"]["uid"], node) == node, pod["metadata"]["name"]
        counts = Counter(pod["spec"]["nodeName"] for pod in placed)
        assert all(count <= PER_NODE for count in counts.values()), counts

    def check_settled(self) -> None:
        """When nothing more happens: pods that fit are placed, the others have a reason, the cache is right."""
        self.cluster.until(self._is_settled, what="every pod to have its place or its reason", seen=self._unsettled)
        self.check()
        while "Failed to compare" in (compared := self._compared_now()):
            pass  # a torn connection is not seen before it is used
        assert "differences=0" in compared, self.scheduler.written()

    def _compared_now(self) -> str:
        """The log lines of the scheduler when it is signalled to compare its cache with the API server."""
        before = len(self._comparisons())
        self.scheduler.process.send_signal(signal.SIGUSR2)
        self.scheduler.until_line(lambda _: len(self._comparisons()) > before, what="a comparison of the cache")
        return self._comparisons()[-1]

    def _comparisons(self) -> list[str]:
        return [line for line in self.scheduler.err if re.search("Compared the cache|Failed to compare", line)]

    def _is_settled(self) -> bool:
        return not self._unsettled()

    def _unsettled(self) -> list[str]:
        pods = self.cluster.pods()
        placed = [pod for pod in pods if pod["spec"].get("nodeName")]
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        found = [f"{pod['metadata']['name']} waits without a reason" for pod in waiting if not _reason(pod)]
        if len(placed) < (room := min(len(pods), NODES * PER_NODE)):
            found.append(f"{len(placed)} pods are placed, and there is room for {room}")
        lowest = min((pod["spec"]["priority"] for pod in placed), default=0)
        found += [
            f"{pod['metadata']['name']} waits for a place that a lower one has"
            for pod in waiting
            if pod["spec"]["priority"] > lowest
        ]
        found += [f"{pod['metadata']['name']} still ends" for pod in pods if "deletionTimestamp" in pod["metadata"]]
        found += [f"{pod['metadata']['name']} does not run" for pod in placed if pod["status"]["phase"] != "Running"]
        return found


def _reason(pod: Document) -> str:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["reason"] == "Unschedulable":
            return str(condition.get("message", ""))
    return ""


class Fault(NamedTuple):
    happens: Callable[[Trouble], None]
    weight: int = 1


FAULTS = [
    Fault(Trouble.connections_are_cut),
    Fault(Trouble.responses_are_torn),
    Fault(Trouble.the_scheduler_is_killed),
    Fault(Trouble.the_scheduler_is_restarted),
    Fault(Trouble.the_scheduler_sleeps),
    Fault(Trouble.the_lease_is_lost),
    Fault(Trouble.the_api_server_is_killed, weight=5),
]
EACH = [fault.happens for fault in FAULTS for _ in range(fault.weight)]


def some_faults(count: int, chance: Random) -> list[Callable[[Trouble], None]]:
    """So many, each as often as its weight, in a random order."""
    faults = [EACH[number % len(EACH)] for number in range(count)]
    chance.shuffle(faults)
    return faults
