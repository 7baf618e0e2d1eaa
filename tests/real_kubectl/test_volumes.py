"""A pod with a claim that waits for it, as a user of kubectl sees it: the volume is made where the pod goes."""

from __future__ import annotations

from tests.real_kubectl.conftest import mooring_up

MANIFESTS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks}
provisioner: disks.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  storageClassName: disks
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 5Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers: [{name: main, image: pause, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


def test_a_pod_runs_with_the_volume_that_was_made_for_it():
    with mooring_up("--nodes=2") as up:
        up.run("apply", "-f", "-", input=MANIFESTS)
        up.run("wait", "--for=condition=Ready", "pod/shop", "--timeout=60s")

        shop, claim = up.json("get", "pod", "shop"), up.json("get", "pvc", "data")
        assert shop["status"]["phase"] == "Running"
        node = shop["spec"]["nodeName"]
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
        name = claim["spec"]["volumeName"]
        [row] = up.rows("get", "pvc")
        assert (row["STATUS"], row["VOLUME"], row["CAPACITY"]) == ("Bound", name, "5Gi")
        [row] = up.rows("get", "pv")
        assert (row["NAME"], row["STATUS"], row["CLAIM"]) == (name, "Bound", "default/data")
        up.events("data", "ProvisioningSucceeded")
        up.events("shop", "Scheduled")

        # Who deletes the claim deletes what was made for it.
        up.run("delete", "pod", "shop", "--grace-period=0", "--force")
        up.run("delete", "pvc", "data")
        up.run("wait", "--for=delete", f"pv/{name}", "--timeout=60s")
