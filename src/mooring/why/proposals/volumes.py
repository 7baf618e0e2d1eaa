"""VolumeBinding and the other plugins of volumes: which claim or storage class is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mooring.framework import Pod
from mooring.objects.core import ResourceRequirements
from mooring.objects.meta import ObjectMeta
from mooring.objects.storage import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
    VolumeStatus,
)
from mooring.why.changes import ProposedChange, with_spec
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode
from mooring.why.recomputation import Recomputation
from mooring.why.similar import similar, similar_words

SIZE = "1Gi"
"""Of a claim that is to be created: its author knows better."""
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def gap(case: RejectedNode) -> Gap:
    claims = _Claims(case.recomputation, case.pod)
    parts = [
        f"lacks the PersistentVolumeClaim {case.pod.namespace}/{name}, which does not exist{claims.like(name)}"
        for name in claims.missing
    ]
    parts += [claims.unbound(claim) for claim in claims.waiting]
    return Gap(" and ".join(parts), len(parts)) if parts else evictions.gap(case)


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    """What is missing is created or named as it is; else fewer pods on the node."""
    claims = _Claims(case.recomputation, case.pod)
    if not claims.missing and not claims.waiting:
        yield from evictions.changes(case)
        return
    if len(claims.missing) == 1 and not claims.waiting:
        [name] = claims.missing
        for near in similar(name, claims.names):
            yield _renamed(case.pod, name, near)
        yield claims.created(name)
    for claim in claims.waiting:
        if claim.storage_class and claim.storage_class not in claims.classes:
            for near in similar(claim.storage_class, claims.classes):
                yield claims.of_class(claim, near)


class _Claims:
    """The claims that the volumes of a pod name."""

    def __init__(self, recomputation: Recomputation, pod: Pod) -> None:
        self._pod = pod
        known = {each.name: each for each in recomputation.known(PersistentVolumeClaim) if _is_in(each, pod)}
        self.names: Sequence[str] = list(known)
        self.classes = {each.name: each for each in recomputation.known(StorageClass)}
        named = [(volume.claim, volume) for volume in pod.volumes if volume.claim is not None]
        self.missing = [name for name, volume in named if not volume.is_ephemeral and name not in known]
        found = [known[name] for name, _ in named if name in known]
        self.waiting = [each for each in found if not each.is_bound and not self._waits_for_pods(each.storage_class)]
        """Those that get no volume because of this pod."""

    def like(self, name: str) -> str:
        return similar_words(name, self.names)

    def unbound(self, claim: PersistentVolumeClaim) -> str:
        """Why it has no volume."""
        name = claim.storage_class
        what = f"needs the PersistentVolumeClaim {claim.key}, which is not bound"
        if not name:
            default = "" if self._default() else ", and there is no default one"
            return f"{what}: it names no StorageClass{default}"
        if name not in self.classes:
            return f"{what}: its StorageClass {name} does not exist{similar_words(name, self.classes)}"
        return f"{what}: its StorageClass {name} binds volumes without waiting for a pod, and has not yet"

    def created(self, name: str) -> ProposedChange:
        """A claim of the default class, as it is once it can be used."""
        manifest: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": self._pod.namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": SIZE}}},
        }
        storage_class = self._default()
        if storage_class is None and self.classes:
            storage_class = manifest["spec"]["storageClassName"] = min(self.classes)
        metadata = ObjectMeta(name=name, namespace=self._pod.namespace, uid=f"new-{name}")
        spec = PersistentVolumeClaimSpec(
            access_modes=("ReadWriteOnce",),
            resources=ResourceRequirements(requests={"storage": SIZE}),
            storage_class_name=storage_class,
        )
        claim = PersistentVolumeClaim(metadata=metadata, spec=spec, status=VolumeStatus(phase="Pending"))
        sentence = f"create the PersistentVolumeClaim {name}, of the size that it needs"
        if storage_class is not None and self._waits_for_pods(storage_class):
            return ProposedChange(sentence, objects=(claim,), created=manifest)
        by = f": StorageClass {storage_class} then makes its volume" if storage_class else ", and a volume for it"
        return ProposedChange(f"{sentence}{by}", objects=_bound(claim), created=manifest)

    def of_class(self, claim: PersistentVolumeClaim, storage_class: str) -> ProposedChange:
        """The class of a claim cannot be changed."""
        spec = msgspec.structs.replace(claim.spec, storage_class_name=storage_class)
        other = PersistentVolumeClaim(metadata=claim.metadata, spec=spec, status=claim.status)
        return ProposedChange(
            f"delete the PersistentVolumeClaim {claim.key}, which has no data yet, and create it again with "
            f"storageClassName {storage_class}",
            objects=(other,),
        )

    def _default(self) -> str | None:
        marked = [name for name, each in self.classes.items() if each.metadata.annotations.get(DEFAULT_CLASS) == "true"]
        return min(marked, default=None)

    def _waits_for_pods(self, name: str) -> bool:
        found = self.classes.get(name)
        return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _is_in(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return claim.namespace == pod.namespace


def _bound(claim: PersistentVolumeClaim) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """The claim with a volume that every node can use."""
    volume = PersistentVolume(metadata=ObjectMeta(name=f"of-{claim.uid}", uid=f"of-{claim.uid}"))
    return (
        PersistentVolumeClaim(
            metadata=msgspec.structs.replace(claim.metadata, annotations={BIND_COMPLETED: "yes"}),
            spec=msgspec.structs.replace(claim.spec, volume_name=volume.name),
            status=VolumeStatus(phase="Bound"),
        ),
        volume.claimed_by(claim),
    )


def _renamed(pod: Pod, name: str, near: str) -> ProposedChange:
    """The pod with another claim in its volumes."""
    volumes = []
    for volume in pod.spec.volumes:
        source = volume.get("persistentVolumeClaim")
        if source is not None and source.get("claimName") == name:
            volume = {**volume, "persistentVolumeClaim": {**source, "claimName": near}}
        volumes.append(volume)
    return ProposedChange(
        f"use the PersistentVolumeClaim {near} in place of {name}",
        pod=with_spec(pod, _volumes=volumes),
        manifest={"spec": {"volumes": volumes}},
    )
