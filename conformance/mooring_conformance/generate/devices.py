"""Devices, the slices that announce them and claims for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring_conformance.generate.dice import Dice, Json, timestamp
from mooring_conformance.generate.objects import an_object

GPU_DRIVER = "gpu.example.com"
NIC_DRIVER = "net.example.com"


def a_slice(
    name: str, driver: str, devices: list[Json], where: Json, pool: str | None = None, count: int = 1, gen: int = 1
) -> Json:
    o = an_object("resource.k8s.io/v1", "ResourceSlice", name)
    o["spec"] = {
        "driver": driver,
        "pool": {"name": pool or name, "generation": gen, "resourceSliceCount": count},
        "devices": devices,
        **where,
    }
    return o


def a_device_class(name: str, exprs: Sequence[str], extended: str | None = None) -> Json:
    o = an_object("resource.k8s.io/v1", "DeviceClass", name)
    o["spec"] = {}
    if exprs:
        o["spec"]["selectors"] = [{"cel": {"expression": e}} for e in exprs]
    if extended:
        o["spec"]["extendedResourceName"] = extended
    return o


def some_gpus(dice: Dice, n: int) -> list[Json]:
    out: list[Any] = []
    numa = dice.choice([1, 2])
    for i in range(n):
        model = dice.choice(["a100", "a100", "h100", "t4"])
        d: Json = {
            "name": f"gpu-{i}",
            "attributes": {
                "model": {"string": model},
                "index": {"int": i},
                "healthy": {"bool": not dice.chance(0.12)},
                "driverVersion": {"version": dice.choice(["1.2.0", "1.10.3", "2.0.0"])},
                "example.org/numa": {"int": i % numa},
            },
            "capacity": {"memory": {"value": {"a100": "40Gi", "h100": "80Gi", "t4": "16Gi"}[model]}},
        }
        if dice.chance(0.15):
            del d["attributes"]["example.org/numa"]
        if dice.chance(0.08):
            d["taints"] = [
                {
                    "key": "maintenance",
                    "value": "x",
                    "effect": dice.choice(["NoSchedule", "NoExecute", "NoSchedule"]),
                    "timeAdded": timestamp(5),
                }
            ]
        out.append(d)
    return out


EXPRESSIONS = [
    f'device.attributes["{GPU_DRIVER}"].model == "a100"',
    f'device.attributes["{GPU_DRIVER}"].model in ["h100", "a100"]',
    f'device.attributes["{GPU_DRIVER}"].healthy',
    f'device.attributes["{GPU_DRIVER}"].index < 2',
    f'device.capacity["{GPU_DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'device.attributes["{GPU_DRIVER}"].driverVersion.compareTo(semver("1.9.0")) >= 0',
    f'device.driver == "{GPU_DRIVER}"',
    f'!(device.attributes["{GPU_DRIVER}"].model == "t4") && device.attributes["{GPU_DRIVER}"].healthy',
    'device.attributes["example.org"].?numa.orValue(-1) == 0',
]


def an_exact_request(dice: Dice, cls: str | None = None) -> Json:
    e: Json = {
        "deviceClassName": cls or dice.choice(["gpu", "gpu", "gpu", "healthy-gpu"]),
        "allocationMode": "ExactCount",
        "count": 1,
    }
    roll = dice.random()
    if roll < 0.15:
        e["allocationMode"] = "All"
        del e["count"]
    elif roll < 0.5:
        e["count"] = dice.choice([2, 2, 3, 4])
    if dice.chance(0.45):
        e["selectors"] = [{"cel": {"expression": c}} for c in dice.sample(EXPRESSIONS, dice.choice([1, 1, 2]))]
    if dice.chance(0.15):
        e["tolerations"] = [{"key": "maintenance", "operator": "Exists", "effect": "NoSchedule"}]
    return e


def a_resource_claim(
    name: str, ns: str = "default", requests: Any = None, constraints: list[Json] | None = None
) -> Json:
    o = an_object("resource.k8s.io/v1", "ResourceClaim", name, ns)
    dev: Json = {"requests": requests}
    if constraints:
        dev["constraints"] = constraints
    o["spec"] = {"devices": dev}
    o["status"] = {}
    return o


def some_resource_claim(dice: Dice, name: str, ns: str = "default") -> Json:
    reqs: list[Any] = []
    for i in range(dice.choice([1, 1, 1, 2])):
        if dice.chance(0.22):
            subs = [{"name": f"s{j}", **dict(an_exact_request(dice).items())} for j in range(2)]
            reqs.append({"name": f"r{i}", "firstAvailable": subs})
        else:
            reqs.append({"name": f"r{i}", "exactly": an_exact_request(dice)})
    cons = None
    if dice.chance(0.3):
        c: Json = {
            "matchAttribute": dice.choice([f"{GPU_DRIVER}/model", f"{GPU_DRIVER}/driverVersion", "example.org/numa"])
        }
        if dice.chance(0.5):
            c["requests"] = [reqs[0]["name"]]
        cons = [c]
    return a_resource_claim(name, ns, reqs, cons)


def allocated(claim: Json, results: list[Json], node_name: str | None = None, reserved: Sequence[Json] = ()) -> None:
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    a: Json = {"devices": {"results": results}}
    if node_name:
        a["nodeSelector"] = {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}]
        }
    claim["status"] = {"allocation": a}
    if reserved:
        claim["status"]["reservedFor"] = [
            {"resource": "pods", "name": x["metadata"]["name"], "uid": x["metadata"]["uid"]} for x in reserved
        ]
