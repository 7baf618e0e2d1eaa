"""Cases about volumes."""

from __future__ import annotations

import copy
import json

from mooring_conformance.generate.dice import Dice, Json, timestamp
from mooring_conformance.generate.objects import (
    ZONE,
    a_case,
    a_config,
    a_container,
    a_namespace,
    a_node,
    a_pod,
    an_object,
)
from mooring_conformance.generate.storage import CAPACITY_DRIVER, CSI_DRIVER, Volumes, a_claim, a_csi_node


def volumes_case(dice: Dice, name: str) -> Json:
    node_count = dice.randint(3, 15)
    zones = [f"z{i}" for i in range(dice.choice([2, 3]))]
    names = [f"node-{i:02d}" for i in range(node_count)]
    objects = [a_namespace("default"), a_namespace("kube-system")]
    limit = dice.choice([1, 2, 3, 5])
    for n in names:
        objects.append(
            a_node(
                dice,
                n,
                odd=0,
                zone=dice.choice(zones) if not dice.chance(0.07) else None,
                region=dice.choice(["r1", "r1", "r2"]),
            )
        )
        if dice.chance(0.9):
            ds = [(CSI_DRIVER, dice.choice([limit, limit, limit + 2, None]))]
            if dice.chance(0.8):
                ds.append((CAPACITY_DRIVER, dice.choice([1, 2, None])))
            objects.append(a_csi_node(n, ds))
    v = Volumes(dice, objects, names, zones)
    kind = dice.choice(
        [
            "bound",
            "bound",
            "local",
            "local",
            "dynamic",
            "capacity",
            "capacity",
            "immediate",
            "missing",
            "rwop",
            "inline",
            "inline",
            "limits",
            "limits",
            "ephemeral",
            "mixed",
            "mixed",
            "oddities",
        ]
    )
    vols: list[Json] = []
    post: list[Json] = []
    pod = a_pod("incoming", containers=[a_container("c", requests={"cpu": "100m"})], priority=dice.choice([0, 0, 10]))

    def add(kind: str, vn: str) -> None:
        if kind == "bound":
            vols.append(v.bound(vn, modes=["ReadWriteOnce"] if dice.chance(0.7) else None))
        elif kind == "local":
            for j in range(dice.choice([1, 1, 2])):
                vols.append(v.local(f"{vn}-{j}"))
        elif kind == "dynamic":
            vols.append(v.dynamic(vn))
        elif kind == "capacity":
            vols.append(v.capacity(vn))
        elif kind == "immediate":
            if dice.chance(0.5):
                vols.append(v.dynamic(vn, sc="immediate"))
            else:
                c = a_claim(f"static-{vn}", "1Gi", "", ns="default")
                objects.append(c)
                vols.append(v.claim_volume(vn, f"static-{vn}"))
        elif kind == "missing":
            vols.append(v.claim_volume(vn, "no-such-claim"))
        elif kind == "inline":
            vols.append(v.inline(vn))
        elif kind == "rwop":
            x = v.bound(vn, modes=["ReadWriteOncePod"])
            vols.append(x)
            for j in range(dice.choice([0, 1, 1, 1])):
                e = a_pod(
                    f"rwop-{vn}-{j}",
                    containers=[a_container("c")],
                    node=dice.choice(names),
                    start=5,
                    priority=dice.choice([0, 5, 20]),
                    volumes=[copy.deepcopy(x)],
                )
                post.append(e)
        elif kind == "limits":
            vols.append(
                v.bound(vn, modes=["ReadWriteOnce"], driver=dice.choice([CSI_DRIVER, CSI_DRIVER, CAPACITY_DRIVER]))
            )
            k = 0
            for n in names:
                for _ in range(dice.choice([0, 1, limit, limit, limit + 1])):
                    x = v.bound("v", modes=["ReadWriteOnce"])
                    pvo = objects[-1]
                    pvo["spec"].pop("nodeAffinity", None)
                    pvo["metadata"].pop("labels", None)
                    post.append(
                        a_pod(
                            f"lim-{vn}-{k}",
                            containers=[a_container("c")],
                            node=n,
                            start=k,
                            volumes=[x],
                            priority=dice.choice([0, 5]),
                        )
                    )
                    k += 1
            if dice.chance(0.3) and post:
                # the incoming pod shares a volume that is already attached
                vols[-1] = copy.deepcopy(dice.choice(post)["spec"]["volumes"][0])
                vols[-1]["name"] = vn
            if dice.chance(0.2):
                attachment = an_object("storage.k8s.io/v1", "VolumeAttachment", f"va-{vn}")
                attachment["spec"] = {
                    "attacher": CSI_DRIVER,
                    "nodeName": dice.choice(names),
                    "source": {"persistentVolumeName": objects[-1]["metadata"]["name"]},
                }
                if objects[-1]["kind"] == "PersistentVolume":
                    objects.append(attachment)
        elif kind == "ephemeral":
            sc = dice.choice(["wait", "wait-topo", "immediate"])
            template: Json = {
                "metadata": {},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": sc,
                    "volumeMode": "Filesystem",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
            vols.append({"name": vn, "ephemeral": {"volumeClaimTemplate": template}})
            roll = dice.random()
            cname = f"incoming-{vn}"
            if roll < 0.5:
                v.dynamic("x", sc=sc, name=cname)
                own = objects[-1]
                if roll < 0.42:
                    own["metadata"]["ownerReferences"] = [
                        {
                            "apiVersion": "v1",
                            "kind": "Pod",
                            "name": "incoming",
                            "uid": pod["metadata"]["uid"],
                            "controller": True,
                            "blockOwnerDeletion": True,
                        }
                    ]
            elif roll < 0.85:
                v.bound("x", name=cname, modes=["ReadWriteOnce"])
                objects[-2]["metadata"]["ownerReferences"] = [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": "incoming",
                        "uid": pod["metadata"]["uid"],
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ]
        elif kind == "oddities":
            roll = dice.random()
            if roll < 0.3:
                vols.append(v.bound(vn))
                objects.pop()  # the volume is gone
            elif roll < 0.6:
                vols.append(v.dynamic(vn))
                objects[-1]["metadata"]["deletionTimestamp"] = timestamp(9000)
                objects[-1]["metadata"]["deletionGracePeriodSeconds"] = 0
                objects[-1]["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
            elif roll < 0.8:
                vols.append(v.bound(vn))
                objects[-2]["status"]["phase"] = "Lost"
            else:
                vols.append({"name": vn, "emptyDir": {}})
                vols.append({"name": vn + "-cm", "configMap": {"name": "cm", "defaultMode": 420}})

    if kind == "mixed":
        for j in range(dice.choice([2, 2, 3])):
            add(dice.choice(["bound", "local", "dynamic", "capacity", "inline", "bound"]), f"v{j}")
    else:
        add(kind, "v0")
        if dice.chance(0.2) and kind in ("bound", "dynamic", "inline"):
            add(kind, "v1")
    # others use inline disks, too
    for j in range(
        dice.choice([0, 2, 5, 8])
        if any(
            "gce" in json.dumps(x) or "rbd" in json.dumps(x) or "aws" in json.dumps(x) or "iscsi" in json.dumps(x)
            for x in vols
        )
        else dice.choice([0, 0, 2])
    ):
        post.append(
            a_pod(
                f"inl-{j}",
                dice.choice(["default"]),
                containers=[a_container("c", requests={"cpu": "100m"})],
                node=dice.choice(names),
                start=j,
                volumes=[v.inline("v")],
                priority=dice.choice([0, 0, 5]),
            )
        )
    pod["spec"]["volumes"] = vols
    if dice.chance(0.1):
        pod["spec"]["nodeSelector"] = {ZONE: dice.choice(zones)}
    gates = {"StorageCapacityScoring": True} if dice.chance(0.25 if v.cap_done else 0.02) else None
    if gates:
        # Which of several capacities of a node gets scored is chance.
        objects = [o for o in objects if o["metadata"]["name"] not in ("cap-host", "cap-nil")]
    config = None
    if gates and dice.chance(0.5):
        config = a_config(
            [
                (
                    "VolumeBinding",
                    {
                        "bindTimeoutSeconds": 60,
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
                    },
                )
            ]
        )
    return a_case(name, objects + post, pod, config, gates)
