"""CSI migration of in-tree volumes: the CSI driver that replaces an in-tree plugin, and its volume handle.

Kubernetes moved its built-in storage plugins into CSI drivers, but objects still name the old sources. Counting
volumes needs the driver and its handle; placing a bound volume needs the topology labels that the driver's nodes carry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mooring.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.storage import CSIVolumeSource, PersistentVolume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONES_IN_LABEL = "__"
"""What separates zones in the label of a volume that is in several."""


class Untranslatable(ValueError):
    """An in-tree volume that its CSI driver could not know."""


class InTree(NamedTuple):
    """A built-in storage plugin and its successor."""

    source: str
    """The field that holds it, in a pod's volume and in a PersistentVolume."""
    plugin: str
    driver: str
    zone_key: str | None
    """The driver's own zone label, which takes the place of the common one in node affinity."""
    is_migrated: bool
    """Whether the scheduler takes the CSI driver for it. The others keep their in-tree meaning here."""


IN_TREE = (
    InTree("awsElasticBlockStore", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", True),
    InTree("gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", True),
    InTree("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com", None, True),
    InTree(
        "cinder",
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
        True,
    ),
    InTree("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com", None, True),
    InTree("azureFile", "kubernetes.io/azure-file", "file.csi.azure.com", None, False),
    InTree("vsphereVolume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", None, False),
)
BY_SOURCE = {each.source: each for each in IN_TREE}
BY_PLUGIN = {each.plugin: each for each in IN_TREE}


def handle_of(in_tree: InTree, source: Mapping[str, Any]) -> str:
    """The driver's name for a volume that a pod names itself."""
    return _HANDLES[in_tree.source](source)


def _aws_handle(source: Mapping[str, Any]) -> str:
    """`vol-…`, `aws:///vol-…` or `aws://zone/vol-…`."""
    name = str(source.get("volumeID", ""))
    if not name.startswith("aws://"):
        return name
    volume = name.removeprefix("aws://").partition("/")[2].partition("?")[0].partition("#")[0].strip("/")
    if not re.fullmatch(r"vol-[^/]*", volume):
        raise Untranslatable(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({name})"
        )
    return volume


def _gce_handle(source: Mapping[str, Any]) -> str:
    return f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{source.get('pdName', '')}"


def _azure_handle(source: Mapping[str, Any]) -> str:
    if (kind := source.get("kind")) is not None and str(kind).lower() != "managed":
        raise Untranslatable(f"kind({kind}) is not supported in csi migration")
    return str(source.get("diskURI", ""))


_HANDLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "awsElasticBlockStore": _aws_handle,
    "gcePersistentDisk": _gce_handle,
    "azureDisk": _azure_handle,
    "cinder": lambda source: str(source.get("volumeID", "")),
    "portworxVolume": lambda source: str(source.get("volumeID", "")),
}


def in_tree_of(volume: PersistentVolume) -> InTree | None:
    """The built-in plugin whose source the volume has, if any."""
    spec = volume.spec
    if spec.csi is not None:
        return None
    for source, value in (
        ("awsElasticBlockStore", spec.aws_elastic_block_store),
        ("gcePersistentDisk", spec.gce_persistent_disk),
        ("azureDisk", spec.azure_disk),
        ("cinder", spec.cinder),
        ("portworxVolume", spec.portworx_volume),
        ("azureFile", spec.azure_file),
        ("vsphereVolume", spec.vsphere_volume),
    ):
        if value is not None:
            return BY_SOURCE[source]
    return None


def csi_source_of(volume: PersistentVolume, in_tree: InTree) -> CSIVolumeSource:
    """What the migrated volume is to its CSI driver. Raises `Untranslatable`."""
    spec = volume.spec
    match in_tree.source:
        case "awsElasticBlockStore":
            handle = _aws_handle(spec.aws_elastic_block_store or {})
        case "gcePersistentDisk":
            handle = _gce_handle_in_zones(volume, (spec.gce_persistent_disk or {}).get("pdName", ""))
        case "azureDisk":
            handle = _azure_handle(spec.azure_disk or {})
        case "cinder":
            handle = (spec.cinder or {}).get("volumeID", "")
        case "portworxVolume":
            handle = (spec.portworx_volume or {}).get("volumeID", "")
        case _:
            raise Untranslatable(f"volumes of {in_tree.plugin} are not taken over by {in_tree.driver} here")
    return CSIVolumeSource(driver=in_tree.driver, volume_handle=handle)


def _gce_handle_in_zones(volume: PersistentVolume, disk: str) -> str:
    zones = (volume.labels.get(BETA_ZONE) or volume.labels.get(ZONE, "")).split(ZONES_IN_LABEL)
    if len(zones) == 1:
        return f"projects/UNSPECIFIED/zones/{zones[0] or 'UNSPECIFIED'}/disks/{disk}"
    for zone in zones:
        if zone.count("-") != 2:
            what = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise Untranslatable(f"failed to get region from zones: {what}")
    regions = sorted({zone.rpartition("-")[0] for zone in zones})
    if len(regions) > 1:
        what = f"multiple or no regions gotten from zones, got: {', '.join(regions)}"
        raise Untranslatable(f"failed to get region from zones: {what}")
    return f"projects/UNSPECIFIED/regions/{regions[0]}/disks/{disk}"


def migrated_nodes_of(volume: PersistentVolume, in_tree: InTree) -> NodeSelector | None:
    """Which nodes can use the migrated volume, in the driver's own labels. Raises `Untranslatable`.

    The common zone label, current or beta, becomes the driver's; a volume whose affinity names no zone but whose labels
    do gets a requirement for it. A beta region label becomes the current one.
    """
    csi_source_of(volume, in_tree)
    required = volume.required_nodes
    if in_tree.zone_key is None:
        return required
    terms = required.node_selector_terms if required is not None else []
    zone, region = _zone_and_region_labels(volume, terms)
    renamed = {zone: in_tree.zone_key} if _values(terms, zone) else {}
    if region == BETA_REGION and _values(terms, BETA_REGION):
        renamed[BETA_REGION] = REGION
    added = [] if zone in renamed else _zone_requirement(volume.labels.get(zone), in_tree.zone_key)
    if not renamed and not added:
        return required
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=(
                    *(
                        msgspec.structs.replace(part, key=renamed.get(part.key, part.key))
                        for part in term.match_expressions
                    ),
                    *added,
                ),
                match_fields=term.match_fields,
            )
            for term in (terms or [NodeSelectorTerm()] if added else terms)
        )
    )


def _zone_and_region_labels(volume: PersistentVolume, terms: Sequence[NodeSelectorTerm]) -> tuple[str, str]:
    """The current labels, or the beta ones if only those are used: affinity first, then the volume's labels."""
    keys = {part.key for term in terms for part in term.match_expressions}
    for used in (keys, volume.labels):
        if ZONE in used:
            return ZONE, REGION
        if BETA_ZONE in used:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: Sequence[NodeSelectorTerm], key: str) -> bool:
    return any(part.values for term in terms for part in term.match_expressions if part.key == key)


def _zone_requirement(label: str | None, key: str) -> list[NodeSelectorRequirement]:
    zones = sorted({zone.strip() for zone in (label or "").split(ZONES_IN_LABEL)} - {""})
    return [NodeSelectorRequirement(key=key, operator="In", values=tuple(zones))] if zones else []
