"""The claims of a StatefulSet's pods: created from templates, and owned according to the retention policy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.simulated.controllers.workload_records import StatefulSet, VolumeClaimTemplate
from mooring.simulated.records import Document, PodRecord, owned_by


def claim_name(owner: StatefulSet, template: VolumeClaimTemplate, ordinal: int) -> str:
    return f"{template.name}-{owner.name}-{ordinal}"


def claim_documents(owner: StatefulSet, ordinal: int) -> list[Document]:
    """The claims of one pod."""
    return [
        {
            "metadata": {
                "name": claim_name(owner, template, ordinal),
                "labels": {**(template.metadata.get("labels") or {}), **owner.spec.selector.match_labels},
                "annotations": template.metadata.get("annotations") or {},
            },
            "spec": template.spec,
        }
        for template in owner.spec.volume_claim_templates
    ]


def volumes_of(owner: StatefulSet, ordinal: int, volumes: Sequence[Document]) -> list[Document]:
    """The pod's volumes: those of its claims, and the template's volumes with other names."""
    of_claims = {
        template.name: {
            "name": template.name,
            "persistentVolumeClaim": {"claimName": claim_name(owner, template, ordinal)},
        }
        for template in owner.spec.volume_claim_templates
    }
    return [*of_claims.values(), *(volume for volume in volumes if volume["name"] not in of_claims)]


def claim_owners(owner: StatefulSet, pod: PodRecord, references: Sequence[Document]) -> list[Document]:
    """The desired ownerReferences of a pod's claim, given its present ones.

    A claim of an earlier set or pod of the same name is left as it is, as is one that another controller owns.
    """
    ours = [each for each in references if _names(each, owner) or _names(each, pod)]
    others = [each for each in references if each not in ours]
    if any(each["uid"] not in (owner.uid, pod.uid) for each in ours):
        return list(references)
    policy = owner.spec.persistent_volume_claim_retention_policy
    is_scaled_down = _is_scaled_down(owner, pod)
    keeps_all = policy.when_scaled == policy.when_deleted == "Retain"
    if keeps_all or any(each.get("controller") for each in others):
        return others
    if policy.when_scaled == "Delete" and is_scaled_down:
        return others + owned_by(pod)
    return others + (owned_by(owner) if policy.when_deleted == "Delete" else [])


def is_same_ownership(one: Sequence[Document], other: Sequence[Document]) -> bool:
    """Whether two lists of ownerReferences have the same owners and the same controller."""
    return _ownership(one) == _ownership(other)


def is_of_an_earlier_pod(references: Sequence[Document], pod_name: str) -> bool:
    """Whether a deleted pod owns the claim: a new pod of the name must wait until the claim is deleted, too."""
    return any((each.get("kind"), each.get("name")) == ("Pod", pod_name) for each in references)


def _names(reference: Document, owner: StatefulSet | PodRecord) -> bool:
    kind = type(owner).KIND
    expected = (kind.api_version, kind.kind, owner.name)
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == expected


def _ownership(references: Sequence[Document]) -> set[tuple[Any, bool]]:
    return {(each["uid"], bool(each.get("controller"))) for each in references}


def _is_scaled_down(owner: StatefulSet, pod: PodRecord) -> bool:
    ordinal = pod.name.rpartition("-")[2]
    return not ordinal.isdecimal() or int(ordinal) not in owner.ordinals
