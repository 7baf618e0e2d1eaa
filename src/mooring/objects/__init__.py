"""The Kubernetes objects a scheduler reads: snake_case here, camelCase on the wire.

`meta` (names, owners, kinds), `core` (Pod and Node), `quantity`, `selectors`, `requests` (what a pod needs
for and counts as on a node).
"""

from mooring.objects.core import Node, Pod
from mooring.objects.meta import CustomResource, Kind, KubeObject, ObjectMeta, OwnerReference, ResourcePart

__all__ = ["CustomResource", "Kind", "KubeObject", "Node", "ObjectMeta", "OwnerReference", "Pod", "ResourcePart"]
