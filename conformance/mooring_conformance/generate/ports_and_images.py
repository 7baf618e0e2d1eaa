"""Cases about host ports and about images that nodes have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring_conformance.generate.dice import GIB, MIB, Dice, Json
from mooring_conformance.generate.objects import a_case, a_container, a_namespace, a_node, a_pod


def some_ports(dice: Dice, n: int, host_network: bool = False, dense: bool = True) -> list[Json]:
    """Ports that one pod may have together."""
    out: list[Json] = []
    seen: set[tuple[Any, ...]] = set()
    for _ in range(n):
        port = dice.choice([80, 443, 8080, 53, 9100] if dense else list(range(8000, 8020)))
        proto = dice.choice(["TCP", "TCP", "TCP", "UDP", "SCTP"])
        ip = dice.choice(["", "", "", "0.0.0.0", "127.0.0.1", "10.0.0.1", "192.168.1.7", "::", "::1"])
        if (port, proto, ip) in seen:
            continue
        seen.add((port, proto, ip))
        e: Json = {"containerPort": port if host_network else dice.choice([port, 1234]), "protocol": proto}
        if host_network or dice.chance(0.85):
            e["hostPort"] = port
            if ip:
                e["hostIP"] = ip
        out.append(e)
    if host_network:
        return _first_of_each(out, lambda e: (e["containerPort"], e["protocol"]))
    return _first_of_each(
        out, lambda e: (e["hostPort"], e["protocol"], e.get("hostIP", "")) if e.get("hostPort") else None
    )


def _first_of_each(ports: list[Json], key: Callable[[Json], Any]) -> list[Json]:
    """Those that no earlier one has the key of; without a key there is no clash."""
    seen: set[Any] = set()
    kept = []
    for port in ports:
        what = key(port)
        if what is None or what not in seen:
            kept.append(port)
        seen.add(what)
    return kept


def ports_case(dice: Dice, name: str) -> Json:
    dense = dice.chance(0.5)
    node_count = dice.randint(3, 12) if not dense else dice.randint(3, 6)
    objects = [a_namespace("default"), a_namespace("other")]
    names = [f"node-{i:02d}" for i in range(node_count)]
    for n in names:
        objects.append(a_node(dice, n, odd=0))
    k = 0
    for n in names:
        for _ in range(dice.choice([0, 1, 1, 2, 3] if not dense else [2, 3, 4])):
            host_network = dice.chance(0.2)
            ports = some_ports(dice, dice.choice([1, 2, 3] if not dense else [3, 4]), host_network)
            spec: Json = {"hostNetwork": True} if host_network else {}
            c = [a_container("c", requests={"cpu": "50m"}, ports=ports)]
            if dice.chance(0.15) and not host_network:
                # ports of ordinary init containers do not count, those of sidecars do
                spec["initContainers"] = [
                    a_container("i", ports=some_ports(dice, 1), restart=dice.choice([None, "Always"]))
                ]
            objects.append(
                a_pod(
                    f"e{k}",
                    dice.choice(["default", "other"]),
                    containers=c,
                    node=n,
                    start=k,
                    priority=dice.choice([0, 0, 5]),
                    **spec,
                )
            )
            k += 1
    host_network = dice.chance(0.2)
    spec = {"hostNetwork": True} if host_network else {}
    cs = [
        a_container(
            "c0",
            requests={"cpu": "50m"},
            ports=some_ports(dice, dice.choice([0, 1, 1, 2, 3] if not dense else [1, 2, 3, 4]), host_network),
        )
    ]
    if dice.chance(0.25) and not host_network:
        cs.append(
            a_container(
                "c1", ports=[{"containerPort": 7777, "hostPort": 7777, "protocol": dice.choice(["TCP", "UDP"])}]
            )
        )
    if dice.chance(0.2) and not host_network:
        spec["initContainers"] = [a_container("i", ports=some_ports(dice, 1), restart=dice.choice([None, "Always"]))]
    if dice.chance(0.08):
        spec["nodeName"] = dice.choice([*names, "no-such-node"])
    pod = a_pod("incoming", containers=cs, priority=dice.choice([0, 0, 10]), **spec)
    return a_case(name, objects, pod)


IMAGES = [
    "nginx",
    "nginx:1.27",
    "registry.k8s.io/pause:3.10",
    "registry.example.com:5000/team/app",
    "registry.example.com:5000/team/app:v2",
    "gcr.io/ml/train:huge",
    "busybox:latest",
    "docker.io/library/redis:7",
    "docker.io/library/redis",
    "quay.io/x/y@sha256:" + "ab" * 32,
]


def as_reported(i: str) -> str:
    # Kubelets report images with a tag.
    return i if i.rfind(":") > i.rfind("/") else i + ":latest"


def images_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 20)
    objects = [a_namespace("default")]
    sizes = {
        i: dice.choice(
            [
                700 * 10**3,
                5 * MIB,
                23 * MIB,
                24 * MIB,
                80 * MIB,
                187 * 10**6,
                350 * MIB,
                999 * MIB,
                1000 * MIB,
                2 * GIB,
                5 * GIB,
            ]
        )
        for i in IMAGES
    }
    for i in range(node_count):
        imgs: list[Any] = []
        for im in IMAGES:
            if dice.chance(0.35):
                names = [as_reported(im)]
                if dice.chance(0.3):
                    names.insert(0, im.split("@")[0].rsplit(":", 1)[0] + "@sha256:" + "cd" * 32)
                sz = sizes[im] if dice.chance(0.85) else int(sizes[im] * dice.choice([0.5, 1.1, 2]))
                imgs.append({"names": names, "sizeBytes": sz})
        if dice.chance(0.15):
            imgs.append({"names": ["unrelated:1"], "sizeBytes": 10 * MIB})
        objects.append(a_node(dice, f"node-{i:02d}", images=imgs, odd=0, unschedulable=dice.chance(0.05)))
    cs = [
        a_container(f"c{j}", image=dice.choice(IMAGES), requests={"cpu": "100m"})
        for j in range(dice.choice([1, 1, 2, 3]))
    ]
    spec: Json = {}
    if dice.chance(0.3):
        spec["initContainers"] = [a_container("i", image=dice.choice(IMAGES), restart=dice.choice([None, "Always"]))]
    if dice.chance(0.15):
        spec["volumes"] = [{"name": "model", "image": {"reference": dice.choice(IMAGES), "pullPolicy": "IfNotPresent"}}]
    return a_case(name, objects, a_pod("incoming", containers=cs, **spec))
