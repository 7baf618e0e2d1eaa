"""How soon after a fault pods are bound again: Mooring and kube-scheduler side by side, on one real control plane.

Both lead, each by a lease of its own and for pods of its own; every fault affects both at the same time. A scheduler
that exits is restarted at once, as kubelet would. Measured for each fault, from its end on:

    next    until the first pod that was created after it is bound
    all     until every pod that was created shortly before, during or right after it is bound

Run it by `scripts/measure-recovery`; the machine should have nothing else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.programs import Program, private_home
from tests.real_apiserver.bad_network import BadNetwork
from tests.real_apiserver.control_plane import ADMIN, Api, ApiError, ControlPlane
from tests.real_apiserver.failing_writes import FailingWrites, Spoiled
from tests.real_kubectl.conftest import real_program

MOORING, KUBE_SCHEDULER = "mooring", "kube-scheduler"
LOOK_EVERY_SECONDS = 0.01
GIVE_UP_SECONDS = 90.0
NODES = 5
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PODS = "/api/v1/namespaces/default/pods"
TROUBLE = (OSError, http.client.HTTPException, ApiError, json.JSONDecodeError)


class World:
    """The control plane, and the proxies between it and the schedulers."""

    def __init__(self, control_plane: ControlPlane, network: BadNetwork, proxy: FailingWrites) -> None:
        self.control_plane, self.network, self.proxy = control_plane, network, proxy

    def etcd_is_killed(self) -> Iterator[None]:
        self.control_plane.kill_etcd()
        yield
        self.control_plane.start_etcd()

    def etcd_stalls(self) -> Iterator[None]:
        self.control_plane.pause_etcd()
        yield
        self.control_plane.resume_etcd()

    def the_server_is_killed(self) -> Iterator[None]:
        self.control_plane.kill_server()
        yield
        self.control_plane.start_server()

    def the_server_stalls(self) -> Iterator[None]:
        self.control_plane.pause_server()
        yield
        self.control_plane.resume_server()

    def connections_are_cut(self) -> Iterator[None]:
        self.network.cut()
        yield
        self.network.cut()

    def nothing_arrives(self) -> Iterator[None]:
        self.network.hold()
        yield
        self.network.let_go()

    def responses_to_writes_are_lost(self) -> Iterator[None]:
        yield from self._spoiled(Spoiled.RESPONSE_LOST)

    def writes_time_out(self) -> Iterator[None]:
        yield from self._spoiled(Spoiled.NOT_DONE_504)

    def writes_time_out_and_are_done(self) -> Iterator[None]:
        yield from self._spoiled(Spoiled.DONE_504)

    def _spoiled(self, how: Spoiled) -> Iterator[None]:
        self.proxy.writes = how
        yield
        self.proxy.writes = Spoiled.NOTHING


@dataclass(frozen=True)
class Fault:
    """Between the two steps of `happens` it lasts."""

    happens: Callable[[World], Iterator[None]]
    seconds: float
    by_proxy: bool = False
    """Whether the schedulers must be connected through the HTTP proxy for it."""


FAULTS = {
    "etcd-killed": Fault(World.etcd_is_killed, 1.0),
    "etcd-stalled": Fault(World.etcd_stalls, 5.0),
    "server-killed": Fault(World.the_server_is_killed, 1.0),
    "server-stalled": Fault(World.the_server_stalls, 5.0),
    "connections-cut": Fault(World.connections_are_cut, 0.5),
    "network-stalled": Fault(World.nothing_arrives, 5.0),
    "responses-lost": Fault(World.responses_to_writes_are_lost, 5.0, by_proxy=True),
    "writes-504": Fault(World.writes_time_out, 5.0, by_proxy=True),
    "writes-done-504": Fault(World.writes_time_out_and_are_done, 5.0, by_proxy=True),
    # Longer than a leader retries (renewDeadline), and longer than its lease.
    "etcd-stalled-11s": Fault(World.etcd_stalls, 11.0),
    "writes-504-11s": Fault(World.writes_time_out, 11.0, by_proxy=True),
    "server-killed-20s": Fault(World.the_server_is_killed, 20.0),
    "network-stalled-20s": Fault(World.nothing_arrives, 20.0),
}


class Scheduler:
    """One of the two: started, and started again whenever it ends."""

    def __init__(self, name: str, home: Path, kubeconfig: Path) -> None:
        self.name, self._home, self._kubeconfig = name, home, kubeconfig
        self.restarts = 0
        self._is_over = False
        self._program = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> Program:
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": True, "resourceName": self.name},
            "clientConnection": {"kubeconfig": str(self._kubeconfig)},
            "profiles": [{"schedulerName": self.name}],
        }
        path = self._home / f"{self.name}.json"
        path.write_text(json.dumps(configuration), encoding="utf-8")
        if self.name == MOORING:
            return Program("run", f"--config={path}", "-v=2", home=self._home)
        command = (str(real_program("kube-scheduler")), "--secure-port=0")
        return Program(f"--config={path}", "-v=2", home=self._home, program=command)

    def _keep(self) -> None:
        while not self._is_over:
            self._program.process.wait()
            if self._is_over:
                return
            self.restarts += 1
            self._close("ended")
            self._program = self._start()

    def close(self) -> None:
        self._is_over = True
        with self._program:
            pass
        self._keeper.join()
        self._close("closed")  # perhaps one that was started meanwhile

    def _close(self, why: str) -> None:
        with self._program:
            pass
        with (self._home / f"{self.name}.log").open("a", encoding="utf-8") as log:
            log.write(f"--- {why}\n{self._program.written()}\n")


@dataclass
class Figures:
    """Of one scheduler and one fault."""

    next: list[float] = field(default_factory=list)
    all: list[float] = field(default_factory=list)
    restarts: int = 0

    def row(self) -> str:
        return (
            "".join(f"{statistics.median(each):>9.2f}{max(each):>9.2f}" for each in (self.next, self.all))
            + f"{self.restarts:>10}"
        )


class Pods:
    """Pods of one scheduler, created and observed on a connection of their own, as an administrator."""

    def __init__(self, control_plane: ControlPlane, scheduler: str) -> None:
        self._api = Api(control_plane.port, control_plane.ca_pem, f"token-of-{ADMIN}", seconds=2.0)
        self._scheduler = scheduler
        self._made = 0

    def close(self) -> None:
        self._api.close()

    def create(self, *, until: float) -> str | None:
        """A new pod's name; None if it could not be created by then."""
        self._made += 1
        name = f"{self._scheduler}-{self._made}"
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1m"}}}
        spec = {"schedulerName": self._scheduler, "containers": [container]}
        while time.monotonic() < until:
            try:
                self._api.create(PODS, {"metadata": {"name": name}, "spec": spec})
                return name
            except ApiError as error:
                if error.code == 409:  # an earlier try whose response was lost
                    return name
            except TROUBLE:
                pass
            time.sleep(LOOK_EVERY_SECONDS)
        return None

    def bound_at(self, name: str, *, until: float) -> float:
        """When it was first seen with a node."""
        while time.monotonic() < until:
            with contextlib.suppress(*TROUBLE):
                if self._api.get(f"{PODS}/{name}")["spec"].get("nodeName"):
                    return time.monotonic()
            time.sleep(LOOK_EVERY_SECONDS)
        return until


def one_round(
    pods: Pods, fault_ends: threading.Event, ended_at: Callable[[], float], begin: threading.Barrier
) -> tuple[float, float]:
    """What one scheduler's pods see of one fault; both schedulers' do so at the same time."""
    far = time.monotonic() + GIVE_UP_SECONDS
    first = pods.create(until=far)
    assert first is not None
    pods.bound_at(first, until=far)
    begin.wait()
    made = [first]
    while not fault_ends.is_set():
        name = pods.create(until=time.monotonic() + 0.2)
        if name is not None:
            made.append(name)
        fault_ends.wait(0.2)
    last = pods.create(until=far)
    assert last is not None
    next_at = pods.bound_at(last, until=far)
    all_at = max(pods.bound_at(name, until=far) for name in made)
    return next_at - ended_at(), max(all_at, next_at) - ended_at()


class Comparison:
    """Both schedulers, and the same faults for both."""

    def __init__(self, control_plane: ControlPlane, home: Path) -> None:
        self._control_plane, self._home = control_plane, home
        self.figures: dict[tuple[str, str], Figures] = {}

    def measure(self, names: list[str], rounds: int) -> None:
        self._make_nodes()
        for by_proxy in (False, True):
            chosen = [name for name in names if FAULTS[name].by_proxy == by_proxy]
            if chosen:
                self._measure(chosen, rounds, by_proxy)

    def _measure(self, names: list[str], rounds: int, by_proxy: bool) -> None:
        with (
            BadNetwork(self._control_plane.port) as network,
            FailingWrites(self._control_plane) as proxy,
            contextlib.ExitStack() as stack,
        ):
            world = World(self._control_plane, network, proxy)
            port = proxy.port if by_proxy else network.port
            kubeconfig = self._control_plane.write_kubeconfig(ADMIN, self._home / f"by-{port}", port=port)
            schedulers = {name: Scheduler(name, self._home, kubeconfig) for name in (MOORING, KUBE_SCHEDULER)}
            for scheduler in schedulers.values():
                stack.callback(scheduler.close)
            pods = {name: Pods(self._control_plane, name) for name in schedulers}
            for each in pods.values():
                stack.callback(each.close)
            for number in range(rounds):
                for name in names:
                    self._one(world, name, schedulers, pods)
                    print(f"round {number + 1}: {name}", *self._last(name), file=sys.stderr, flush=True)

    def _last(self, fault: str) -> list[str]:
        return [
            f"{who} {self.figures[fault, who].next[-1]:.2f}/{self.figures[fault, who].all[-1]:.2f}"
            for who in (MOORING, KUBE_SCHEDULER)
        ]

    def _one(self, world: World, name: str, schedulers: dict[str, Scheduler], pods: dict[str, Pods]) -> None:
        fault = FAULTS[name]
        before = {who: scheduler.restarts for who, scheduler in schedulers.items()}
        ends, begin = threading.Event(), threading.Barrier(3)
        ended_at: list[float] = []
        found: dict[str, tuple[float, float]] = {}

        def follow(who: str) -> None:
            found[who] = one_round(pods[who], ends, lambda: ended_at[0], begin)

        threads = [threading.Thread(target=follow, args=(who,)) for who in schedulers]
        for thread in threads:
            thread.start()
        self._wait_for_renewals()
        begin.wait()
        steps = fault.happens(world)
        next(steps)
        time.sleep(fault.seconds)
        for _ in steps:
            raise AssertionError("a fault has two steps")
        ended_at.append(time.monotonic())
        ends.set()
        for thread in threads:
            thread.join()
        for who, scheduler in schedulers.items():
            figures = self.figures.setdefault((name, who), Figures())
            figures.next.append(found[who][0])
            figures.all.append(found[who][1])
            figures.restarts += scheduler.restarts - before[who]
        self._control_plane.api.close()
        self._control_plane.api.delete(PODS)

    def _wait_for_renewals(self) -> None:
        """Until both have renewed their leases: no fault may be a consequence of the one before."""
        before = self._renewals()
        until = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < until:
            now = self._renewals()
            if all(now[name] not in ("", before[name]) for name in now):
                return
            time.sleep(LOOK_EVERY_SECONDS * 10)

    def _renewals(self) -> dict[str, str]:
        found = self._control_plane.api.items(LEASES)
        renewals = {each["metadata"]["name"]: each["spec"]["renewTime"] for each in found}
        return {name: renewals.get(name, "") for name in (MOORING, KUBE_SCHEDULER)}

    def _make_nodes(self) -> None:
        for number in range(NODES):
            resources = {"cpu": "32", "memory": "64Gi", "pods": "1000"}
            status = {"allocatable": resources, "capacity": resources}
            self._control_plane.api.create("/api/v1/nodes", {"metadata": {"name": f"node-{number}"}, "status": status})

    def table(self) -> str:
        heads = "".join(f"{head:>9}" for head in ("next", "worst", "all", "worst"))
        lines = [f"{'fault':<20}{'scheduler':<16}{heads}{'restarts':>10}   (seconds after its end; median, worst)"]
        lines += [f"{fault:<20}{who:<16}{figures.row()}" for (fault, who), figures in self.figures.items()]
        return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/measure-recovery", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each fault happens")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="only this one; may be repeated")
    parser.add_argument("--keep", type=Path, help="a folder for the logs of both schedulers")
    options: Any = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends with this
    with private_home() as folder, private_home() as home, ControlPlane(folder) as control_plane:
        comparison = Comparison(control_plane, options.keep or home)
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
        comparison.measure(options.fault or list(FAULTS), options.rounds)
        print(comparison.table())


if __name__ == "__main__":
    main()
