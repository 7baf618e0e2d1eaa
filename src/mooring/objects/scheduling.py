"""scheduling.k8s.io/v1: PriorityClasses."""

from __future__ import annotations

from typing import ClassVar

from mooring.objects.meta import Kind, KubeObject


class PriorityClass(KubeObject, group="scheduling.k8s.io", version="v1", plural="priorityclasses", scope="Cluster"):
    """A priority with a name, that pods refer to."""

    KIND: ClassVar[Kind]

    value: int = 0
