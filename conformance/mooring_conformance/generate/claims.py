"""Cases about resource claims."""

from __future__ import annotations

from typing import Any

from mooring_conformance.generate.devices import (
    GPU_DRIVER,
    NIC_DRIVER,
    a_device_class,
    a_resource_claim,
    a_slice,
    allocated,
    some_gpus,
    some_resource_claim,
)
from mooring_conformance.generate.dice import Dice, Json
from mooring_conformance.generate.objects import a_case, a_container, a_namespace, a_node, a_pod
from mooring_conformance.generate.storage import in_zones


def dra_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 10)
    names = [f"node-{i:02d}" for i in range(node_count)]
    zones = ["z0", "z1"]
    objects = [a_namespace("default")]
    devs: Json = {}
    ext = dice.chance(0.15)
    for n in names:
        objects.append(
            a_node(
                dice,
                n,
                odd=0,
                zone=dice.choice(zones),
                extra={"example.com/gpu": 2} if ext and dice.chance(0.2) else None,
            )
        )
        if dice.chance(0.85):
            d = some_gpus(dice, dice.choice([1, 2, 2, 4, 4, 8]))
            devs[n] = d
            if len(d) > 2 and dice.chance(0.2):
                h = len(d) // 2
                complete = not dice.chance(0.2)
                objects.append(a_slice(f"{n}-a", GPU_DRIVER, d[:h], {"nodeName": n}, pool=n, count=2))
                if complete:
                    objects.append(a_slice(f"{n}-b", GPU_DRIVER, d[h:], {"nodeName": n}, pool=n, count=2))
                else:
                    devs[n] = d[:h]
            else:
                objects.append(a_slice(f"{n}-gpus", GPU_DRIVER, d, {"nodeName": n}, pool=n))
    net = dice.chance(0.25)
    if net:
        for z in zones:
            objects.append(
                a_slice(
                    f"net-{z}",
                    NIC_DRIVER,
                    [{"name": f"nic-{j}", "attributes": {"speed": {"int": dice.choice([10, 100])}}} for j in range(2)],
                    dice.choice([{"allNodes": True}, {"nodeSelector": {"nodeSelectorTerms": in_zones([z])}}]),
                )
            )
    objects.append(a_device_class("gpu", [f'device.driver == "{GPU_DRIVER}"'], "example.com/gpu" if ext else None))
    objects.append(
        a_device_class(
            "healthy-gpu", [f'device.driver == "{GPU_DRIVER}"', f'device.attributes["{GPU_DRIVER}"].healthy']
        )
    )
    objects.append(a_device_class("nic", [f'device.driver == "{NIC_DRIVER}"']))
    # claims in use
    k = 0
    for n in names:
        for d in devs.get(n, []):
            if dice.chance(0.3):
                c = a_resource_claim(
                    f"used-{k}",
                    requests=[
                        {
                            "name": "r0",
                            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                        }
                    ],
                )
                e = a_pod(
                    f"e{k:03d}",
                    containers=[a_container("c", requests={"cpu": "100m"}, claims=[{"name": "gpu"}])],
                    node=n,
                    start=k,
                    resourceClaims=[{"name": "gpu", "resourceClaimName": f"used-{k}"}],
                    priority=0,
                )
                allocated(c, [{"request": "r0", "driver": GPU_DRIVER, "pool": n, "device": d["name"]}], n, [e])
                objects += [c, e]
                k += 1
    pod = a_pod("incoming", containers=[a_container("c", requests={"cpu": "100m"})], priority=dice.choice([0, 0, 10]))
    arguments, refs = [], []

    def use(cname: str, ref: str) -> None:
        arguments.append({"name": ref, "resourceClaimName": cname})
        refs.append({"name": ref})

    roll = dice.random()
    if ext and roll < 0.7:
        q = str(dice.choice([1, 1, 2, 3]))
        pod["spec"]["containers"] = [a_container("c", requests={"cpu": "100m"}, limits={"example.com/gpu": q})]
    elif roll < 0.55:
        for i in range(dice.choice([1, 1, 1, 2])):
            objects.append(some_resource_claim(dice, f"claim-{i}"))
            use(f"claim-{i}", f"g{i}")
    elif roll < 0.65:
        # from a template
        c = some_resource_claim(dice, "incoming-gpu-xyz")
        c["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "incoming",
                "uid": pod["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        c["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "g0"}
        arguments.append({"name": "g0", "resourceClaimTemplateName": "tmpl"})
        refs.append({"name": "g0"})
        if dice.chance(0.85):
            objects.append(c)
            pod["status"]["resourceClaimStatuses"] = [{"name": "g0", "resourceClaimName": "incoming-gpu-xyz"}]
    elif roll < 0.85 and devs:
        # a claim that is allocated already, used by others or not
        n = dice.choice(list(devs))
        c = a_resource_claim(
            "shared",
            requests=[
                {"name": "r0", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
            ],
        )
        others: list[Any] = []
        if dice.chance(0.6):
            others = [
                a_pod(
                    f"sharer-{j}",
                    containers=[a_container("c", claims=[{"name": "g"}])],
                    node=n,
                    start=j,
                    resourceClaims=[{"name": "g", "resourceClaimName": "shared"}],
                )
                for j in range(dice.choice([1, 2]))
            ]
        free = list(devs[n])
        allocated(
            c, [{"request": "r0", "driver": GPU_DRIVER, "pool": n, "device": dice.choice(free)["name"]}], n, others
        )
        objects += [c, *others]
        use("shared", "g0")
        if dice.chance(0.3):
            objects.append(some_resource_claim(dice, "claim-x"))
            use("claim-x", "g1")
    elif roll < 0.9:
        use("no-such-claim", "g0")
    else:
        reqs = [
            {
                "name": "r0",
                "exactly": {
                    "deviceClassName": "no-such-class" if dice.chance(0.3) else "gpu",
                    "allocationMode": "ExactCount",
                    "count": 1,
                },
            }
        ]
        if net:
            reqs.append(
                {
                    "name": "nic",
                    "exactly": {
                        "deviceClassName": "nic",
                        "allocationMode": "ExactCount",
                        "count": dice.choice([1, 2]),
                        "selectors": [{"cel": {"expression": f'device.attributes["{NIC_DRIVER}"].speed >= 100'}}],
                    },
                }
            )
        objects.append(a_resource_claim("claim-n", requests=reqs))
        use("claim-n", "g0")
    if arguments:
        pod["spec"]["resourceClaims"] = arguments
        pod["spec"]["containers"][0]["resources"]["claims"] = refs
    return a_case(name, objects, pod)
