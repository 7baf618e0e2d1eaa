"""In place of kube-scheduler on a kubeadm control plane: its static pod, with another image, `--config` and user.

Three things change and nothing else: the image, `--config` with the mount that makes the file visible, and
`runAsUser: 0`, because kubeadm's scheduler.conf is readable by root only. It starts from the manifest that the node
has; without one, from what kubeadm v1.36 writes.
"""

from __future__ import annotations

import copy
from pathlib import PurePosixPath
from typing import Any

from mooring.base.errors import OperatorMistake, Problem
from mooring.deploy.writing import Document

KUBECONFIG = "/etc/kubernetes/scheduler.conf"
CONFIG_PATH = "/etc/kubernetes/mooring-config.yaml"
PLUGINS_PATH = "/etc/kubernetes/mooring-plugins"
USER = "system:kube-scheduler"
"""The user of scheduler.conf; every cluster grants it kube-scheduler's rights."""
_PORT = "probe-port"


def kubeadm_manifest() -> Document:
    """What kubeadm v1.36 writes for kube-scheduler, apart from the image."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-scheduler",
            "namespace": "kube-system",
            "labels": {"component": "kube-scheduler", "tier": "control-plane"},
        },
        "spec": {
            "containers": [
                {
                    "name": "kube-scheduler",
                    "image": "",
                    "imagePullPolicy": "IfNotPresent",
                    "command": [
                        "kube-scheduler",
                        f"--authentication-kubeconfig={KUBECONFIG}",
                        f"--authorization-kubeconfig={KUBECONFIG}",
                        "--bind-address=127.0.0.1",
                        f"--kubeconfig={KUBECONFIG}",
                        "--leader-elect=true",
                    ],
                    "ports": [{"name": _PORT, "containerPort": 10259, "protocol": "TCP"}],
                    "startupProbe": _probe("/livez", first=10, period=10, failures=24),
                    "livenessProbe": _probe("/livez", first=10, period=10, failures=8),
                    "readinessProbe": _probe("/readyz", first=0, period=1, failures=3),
                    "resources": {"requests": {"cpu": "100m"}},
                    "volumeMounts": [{"name": "kubeconfig", "mountPath": KUBECONFIG, "readOnly": True}],
                }
            ],
            "hostNetwork": True,
            "priority": 2000001000,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "kubeconfig", "hostPath": {"path": KUBECONFIG, "type": "FileOrCreate"}}],
        },
    }


def _probe(path: str, *, first: int, period: int, failures: int) -> dict[str, Any]:
    http_get = {"host": "127.0.0.1", "path": path, "port": _PORT, "scheme": "HTTPS"}
    probe: dict[str, Any] = {"httpGet": http_get}
    if first:
        probe["initialDelaySeconds"] = first
    return probe | {"periodSeconds": period, "timeoutSeconds": 15, "failureThreshold": failures}


def replacement(
    manifest: Document,
    *,
    image: str,
    flags: tuple[str, ...] = (),
    with_plugins: bool = False,
    cluster_dns: bool = False,
    source: str,
) -> Document:
    """The manifest with image, `--config` (and further flags) and user changed. `source` is what messages call it."""
    changed = copy.deepcopy(manifest)
    container = _kube_scheduler(changed, source)
    spec = changed["spec"]
    container["image"] = image
    added = [f"--config={CONFIG_PATH}", *([f"--plugins={PLUGINS_PATH}"] if with_plugins else ()), *flags]
    replaced = {flag.partition("=")[0] for flag in added}
    for field in ("command", "args"):
        if field in container:
            container[field] = [word for word in container[field] if str(word).partition("=")[0] not in replaced]
    container["args" if container.get("args") else "command"] += added
    _mount(spec, container, "config", CONFIG_PATH, "File")
    if with_plugins:
        _mount(spec, container, "plugins", PLUGINS_PATH, "Directory")
    if cluster_dns:
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"  # the host's resolver knows no services
    container.setdefault("securityContext", {})["runAsUser"] = 0
    return changed


def flags_of(manifest: Document) -> list[str]:
    """The flags of its kube-scheduler."""
    container = _kube_scheduler(manifest, "the manifest")
    return [str(word) for word in (*container["command"][1:], *(container.get("args") or ()))]


def _mount(spec: Document, container: Document, name: str, path: str, kind: str) -> None:
    """Show a path of the node under the same path, unless something above it is shown already."""
    mounts = container.setdefault("volumeMounts", [])
    shown = [PurePosixPath(mount.get("mountPath", "")) for mount in mounts]
    if any(each in (PurePosixPath(path), *PurePosixPath(path).parents) for each in shown):
        return
    volumes = spec.setdefault("volumes", [])
    taken = {volume.get("name") for volume in volumes}
    free = next(each for each in (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3))) if each not in taken)
    mounts.append({"name": free, "mountPath": path, "readOnly": True})
    volumes.append({"name": free, "hostPath": {"path": path, "type": kind}})


def _kube_scheduler(manifest: Any, source: str) -> Document:
    """Its container that runs kube-scheduler; what is no such pod is refused."""
    problems = []
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(manifest, dict) or manifest.get("kind") != "Pod":
        problems.append(Problem("kind", "must be Pod: the static pod that kubeadm wrote for kube-scheduler"))
    elif not isinstance(containers, list) or not all(isinstance(each, dict) for each in containers):
        problems.append(Problem("spec.containers", "must be the list of the pod's containers"))
    else:
        for container in containers:
            command = container.get("command")
            if isinstance(command, list) and command and str(command[0]).rpartition("/")[2] == "kube-scheduler":
                found: Document = container
                return found
        problems.append(Problem("spec.containers", 'none has a command that starts with "kube-scheduler"'))
    raise OperatorMistake.found_in(source, problems)
