"""A leader that is stopped for longer than its lease, under load, and wakes when another leads: it writes nothing more.

Where it was stopped while it passed a request to the kernel, it does not wake: the kernel has killed it.
STOPPED_LEADER_TIMES=100 stops a leader so many times.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tests.cli.programs import Program
from tests.real_apiserver.cluster import LEASES, PODS, Cluster
from tests.real_apiserver.control_plane import SCHEDULER, SECOND_SCHEDULER, Api, ControlPlane

QUICK = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
TIMES = int(os.environ.get("STOPPED_LEADER_TIMES", "3"))
NODES, AT_ONCE = 3, 60


class Load:
    """So many pods wait at any time; those that are bound go, so that there is always room for the next."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._api = Api(control_plane.port, control_plane.ca_pem, "token-of-admin")
        self._made = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            self._step()
        self._api.close()

    def _step(self) -> None:
        pods = self._api.items(PODS)
        for pod in pods:
            if pod["spec"].get("nodeName"):
                self._api.delete_if_there(f"{PODS}/{pod['metadata']['name']}")
        for _ in range(AT_ONCE - sum(not pod["spec"].get("nodeName") for pod in pods)):
            self._made += 1
            container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1m"}}}
            metadata = {"name": f"load-{self._made}"}
            self._api.create(PODS, {"metadata": metadata, "spec": {"containers": [container]}})

    def end(self) -> None:
        self._over.set()


@contextmanager
def load(control_plane: ControlPlane) -> Iterator[None]:
    work = Load(control_plane)
    thread = threading.Thread(target=work.run)
    thread.start()
    try:
        yield
    finally:
        work.end()
        thread.join()


def writes_of(cluster: Cluster, user: str, since: float) -> list[str]:
    """Writes of the replica after that moment, by the server's audit log, without those of its lease."""
    found = []
    for line in cluster.control_plane.audit_log.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):  # the server is writing it
            continue
        event: dict[str, Any] = json.loads(line)
        received = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if event["user"].get("uid") == user and received >= since and "/leases" not in event["requestURI"]:
            found.append(f"{received - since:+.6f} {event['verb']} {event['requestURI']}")
    return found


def holder(cluster: Cluster) -> str:
    return str(cluster.api.get(f"{LEASES}/kube-scheduler")["spec"]["holderIdentity"])


def replica(cluster: Cluster, user: str) -> Program:
    return cluster.starting_scheduler(*QUICK, f"--kubeconfig={cluster.control_plane.kubeconfig(user)}")


def until_it_writes(cluster: Cluster, user: str) -> None:
    since = time.time()
    cluster.until(lambda: writes_of(cluster, user, since), what=f"writes of {user}")


def paused_and_succeeded(cluster: Cluster, leads: Program, leader: str, standby: str) -> Program:
    """Stop the leader until the standby leads, let it go on, and see what it writes. Gives the one that leads now."""
    successor = replica(cluster, standby)
    successor.mentions("Standing by")
    before = holder(cluster)
    until_it_writes(cluster, leader)

    leads.process.send_signal(signal.SIGSTOP)
    successor.ready()
    assert holder(cluster) not in ("", before)
    until_it_writes(cluster, standby)

    woken = time.time()
    leads.process.send_signal(signal.SIGCONT)
    code = leads.ended()
    assert code in (1, -signal.SIGKILL), leads.written()
    assert code != 1 or "is held by" in leads.written()
    until_it_writes(cluster, standby)  # so that the audit log has what came before
    assert writes_of(cluster, leader, woken) == []
    return successor


def test_a_leader_that_wakes_after_its_lease_expired_writes_nothing(cluster: Cluster):
    resources = {"cpu": "32", "memory": "64Gi", "pods": "1000"}
    for number in range(NODES):
        status = {"allocatable": resources, "capacity": resources}
        cluster.api.create("/api/v1/nodes", {"metadata": {"name": f"n{number}"}, "status": status})
    leader, standby = SCHEDULER, SECOND_SCHEDULER
    leads = replica(cluster, leader)
    leads.ready()
    with load(cluster.control_plane):
        for _ in range(TIMES):
            leads = paused_and_succeeded(cluster, leads, leader, standby)
            leader, standby = standby, leader
    assert leads.end() == 0, leads.written()
