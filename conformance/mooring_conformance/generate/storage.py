"""Volumes, claims and classes, and pods that use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring_conformance.generate.dice import Dice, Json
from mooring_conformance.generate.objects import HOSTNAME, REGION, ZONE, an_object

CSI_DRIVER = "csi.example.com"
CAPACITY_DRIVER = "cap.example.com"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def a_volume(
    name: str,
    size: str,
    sc: str | None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    source: Json | None = None,
    affinity: Any = None,
    labels: Json | None = None,
    claim: Json | None = None,
    vmode: str = "Filesystem",
) -> Json:
    o = an_object("v1", "PersistentVolume", name, labels=labels)
    o["spec"] = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": vmode,
    }
    if sc:
        o["spec"]["storageClassName"] = sc
    o["spec"].update(source or {"csi": {"driver": CSI_DRIVER, "volumeHandle": "h-" + name}})
    if affinity:
        o["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": affinity}}
    if claim:
        m = claim["metadata"]
        o["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": m["namespace"],
            "name": m["name"],
            "uid": m["uid"],
            "resourceVersion": "1",
        }
        o["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bound-by-controller"] = "yes"
    o["status"] = {"phase": "Bound" if claim else "Available"}
    return o


def a_claim(
    name: str,
    size: str,
    sc: str | None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    ns: str = "default",
    volume: str | None = None,
    vmode: str = "Filesystem",
    sel: Any = None,
) -> Json:
    o = an_object("v1", "PersistentVolumeClaim", name, ns)
    o["spec"] = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, "volumeMode": vmode}
    if sc is not None:
        o["spec"]["storageClassName"] = sc
    if sel:
        o["spec"]["selector"] = sel
    if volume:
        o["spec"]["volumeName"] = volume
        o["metadata"]["annotations"] = {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        o["status"] = {"phase": "Bound", "accessModes": list(modes), "capacity": {"storage": size}}
    else:
        o["status"] = {"phase": "Pending"}
    return o


def a_storage_class(name: str, provisioner: str, mode: str, topo: Any = None) -> Json:
    o = an_object("storage.k8s.io/v1", "StorageClass", name)
    o.update(provisioner=provisioner, reclaimPolicy="Delete", volumeBindingMode=mode)
    if topo:
        o["allowedTopologies"] = topo
    return o


def a_csi_node(name: str, drivers: Sequence[tuple[str, int | None]]) -> Json:
    o = an_object("storage.k8s.io/v1", "CSINode", name)
    o["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": "node-" + name}]
    o["spec"] = {
        "drivers": [
            {
                "name": d,
                "nodeID": name,
                "topologyKeys": [HOSTNAME, ZONE],
                **({"allocatable": {"count": c}} if c is not None else {}),
            }
            for d, c in drivers
        ]
    }
    return o


def a_csi_driver(name: str, capacity: bool) -> Json:
    o = an_object("storage.k8s.io/v1", "CSIDriver", name)
    o["spec"] = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "volumeLifecycleModes": ["Persistent"],
        "storageCapacity": capacity,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    return o


def a_capacity(
    name: str, sc: str, capacity: str, topo: Any, maximum: str | None = None, ns: str = "kube-system"
) -> Json:
    o = an_object("storage.k8s.io/v1", "CSIStorageCapacity", name, ns)
    o["storageClassName"] = sc
    if topo is not None:
        o["nodeTopology"] = topo
    if capacity:
        o["capacity"] = capacity
    if maximum:
        o["maximumVolumeSize"] = maximum
    return o


def in_zones(zones: Sequence[str]) -> list[Json]:
    return [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]


def on_hosts(hosts: Sequence[str]) -> list[Json]:
    return [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(hosts)}]}]


class Volumes:
    """Adds volumes to pods, and the objects they need to `objs`."""

    def __init__(self, dice: Dice, objects: list[Json], names: list[str], zones: list[str]) -> None:
        self.dice, self.objects, self.names, self.zones = dice, objects, names, zones
        self.made = 0
        objects.append(a_storage_class("immediate", CSI_DRIVER, "Immediate"))
        objects.append(a_storage_class("wait", CSI_DRIVER, "WaitForFirstConsumer"))
        objects.append(
            a_storage_class(
                "wait-topo",
                CSI_DRIVER,
                "WaitForFirstConsumer",
                [{"matchLabelExpressions": [{"key": ZONE, "values": dice.sample(zones, max(1, len(zones) - 1))}]}],
            )
        )
        objects.append(a_storage_class("local", NO_PROVISIONER, "WaitForFirstConsumer"))
        objects.append(a_storage_class("capacity", CAPACITY_DRIVER, "WaitForFirstConsumer"))
        objects.append(a_csi_driver(CSI_DRIVER, False))
        objects.append(a_csi_driver(CAPACITY_DRIVER, True))
        self.local_done = False
        self.cap_done = False

    def uid(self) -> int:
        self.made += 1
        return self.made

    def claim_volume(self, vol: str, claim: str) -> Json:
        return {"name": vol, "persistentVolumeClaim": {"claimName": claim}}

    def bound(
        self,
        vol: str,
        ns: str = "default",
        modes: Sequence[str] | None = None,
        driver: str = CSI_DRIVER,
        ephemeral_owner: Any = None,
        name: str | None = None,
    ) -> Json:
        dice, i = self.dice, self.uid()
        modes = modes or dice.choice([["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOncePod"]])
        size = f"{dice.choice([1, 5, 10])}Gi"
        claim = a_claim(name or f"bound-{i}", size, dice.choice(["immediate", "wait"]), modes, ns, f"pv-bound-{i}")
        roll = dice.random()
        aff = None
        labels: Json | None = None
        if roll < 0.35:
            aff = in_zones(dice.sample(self.zones, dice.randint(1, max(1, len(self.zones) - 1))))
        elif roll < 0.55:
            aff = on_hosts(dice.sample(self.names, dice.randint(1, len(self.names))))
        elif roll < 0.75:
            key = dice.choice([ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone"])
            labels = {key: "__".join(dice.sample(self.zones, dice.randint(1, min(2, len(self.zones)))))}
            if dice.chance(0.3):
                labels[REGION] = dice.choice(["r1", "r2"])
        self.objects.append(claim)
        self.objects.append(
            a_volume(
                f"pv-bound-{i}",
                size,
                claim["spec"]["storageClassName"],
                modes,
                {"csi": {"driver": driver, "volumeHandle": f"h-{i}"}},
                aff,
                labels,
                claim,
            )
        )
        return self.claim_volume(vol, claim["metadata"]["name"])

    def local(self, vol: str, ns: str = "default") -> Json:
        dice, i = self.dice, self.uid()
        if not self.local_done:
            self.local_done = True
            used = set()
            for j in range(dice.randint(1, 2 * len(self.names))):
                size = dice.randint(1, 60)
                if size in used:
                    continue
                used.add(size)
                roll = dice.random()
                hosts = [dice.choice(self.names)] if roll < 0.8 else dice.sample(self.names, 2)
                pod = a_volume(
                    f"pv-local-{j}",
                    f"{size}Gi",
                    "local",
                    dice.choice([["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]]),
                    {"local": {"path": f"/mnt/{j}"}},
                    on_hosts(hosts),
                    {"kind": dice.choice(["fast", "slow"])},
                    vmode=dice.choice(["Filesystem", "Filesystem", "Filesystem", "Block"]),
                )
                self.objects.append(pod)
        claim = a_claim(
            f"local-{i}",
            f"{dice.choice([1, 5, 10, 20, 40])}Gi",
            "local",
            dice.choice([["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"]]),
            ns,
            sel={"matchLabels": {"kind": dice.choice(["fast", "slow"])}} if dice.chance(0.2) else None,
        )
        self.objects.append(claim)
        return self.claim_volume(vol, claim["metadata"]["name"])

    def dynamic(self, vol: str, ns: str = "default", sc: str | None = None, name: str | None = None) -> Json:
        dice, i = self.dice, self.uid()
        claim = a_claim(
            name or f"dyn-{i}",
            f"{dice.choice([1, 10])}Gi",
            sc or dice.choice(["wait", "wait-topo", "wait-topo"]),
            ns=ns,
        )
        if dice.chance(0.1):
            # the scheduler has chosen a node before
            claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": dice.choice(self.names)}
        self.objects.append(claim)
        return self.claim_volume(vol, claim["metadata"]["name"])

    def capacity(self, vol: str, ns: str = "default") -> Json:
        dice, _i = self.dice, self.uid()
        if not self.cap_done:
            self.cap_done = True
            k = 0
            for z in self.zones:
                if dice.chance(0.75):
                    cap = dice.choice(["5Gi", "10Gi", "15Gi", "100Gi", "0", "10737418240"])
                    self.objects.append(
                        a_capacity(
                            f"cap-{k}",
                            dice.choice(["capacity"] * 4 + ["wait"]),
                            cap,
                            {"matchLabels": {ZONE: z}},
                            dice.choice([None, None, "8Gi"]),
                        )
                    )
                    k += 1
            if dice.chance(0.3):
                self.objects.append(
                    a_capacity(
                        "cap-host",
                        "capacity",
                        "20Gi",
                        {
                            "matchExpressions": [
                                {"key": HOSTNAME, "operator": "In", "values": dice.sample(self.names, 2)}
                            ]
                        },
                    )
                )
            if dice.chance(0.1):
                self.objects.append(a_capacity("cap-nil", "capacity", "50Gi", None))
        return self.dynamic(vol, ns, "capacity")

    def inline(self, vol: str) -> Json:
        dice = self.dice
        roll = dice.random()
        ro = dice.chance(0.4)
        if roll < 0.3:
            return {
                "name": vol,
                "gcePersistentDisk": {"pdName": dice.choice(["pd1", "pd2"]), **({"readOnly": True} if ro else {})},
            }
        if roll < 0.55:
            return {
                "name": vol,
                "awsElasticBlockStore": {
                    "volumeID": dice.choice(["vol1", "vol2"]),
                    **({"readOnly": True} if ro else {}),
                },
            }
        if roll < 0.8:
            return {
                "name": vol,
                "rbd": {
                    "monitors": dice.choice([["m1", "m2"], ["m2", "m3"], ["m9"]]),
                    "image": dice.choice(["i1", "i2"]),
                    "pool": dice.choice(["rbd", "p2"]),
                    "user": "admin",
                    "keyring": "/etc/ceph/keyring",
                    **({"readOnly": True} if ro else {}),
                },
            }
        return {
            "name": vol,
            "iscsi": {
                "targetPortal": dice.choice(["10.0.0.1:3260", "10.0.0.2:3260"]),
                "iqn": dice.choice(["iqn.2016-04.test:a", "iqn.2016-04.test:b"]),
                "lun": dice.choice([0, 1]),
                "iscsiInterface": "default",
                **({"readOnly": True} if ro else {}),
            },
        }
