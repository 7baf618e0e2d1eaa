"""PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSIDrivers, CSINodes and VolumeAttachments."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, items_of, part
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, set_text, spec_of, text_at
from mooring.apiserver.strategies.resource_requirements import round_requirements, round_up
from mooring.apiserver.strategies.volume_sources import default_source
from mooring.apiserver.validation.quantities import check_amount
from mooring.apiserver.validation.selectors import check_node_selector
from mooring.base.clock import timestamp

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _check_access_modes(spec: Document, path: str = "spec") -> list[FieldError]:
    modes = items_of(spec, "accessModes")
    if not modes:
        return [required(f"{path}.accessModes", "at least 1 access mode is required")]
    return [unsupported(f"{path}.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]


def check_claim_spec(spec: Document, path: str) -> list[FieldError]:
    """Validate the spec of a claim, or of a claim template of a workload."""
    errors = _check_access_modes(spec, path)
    storage = part(spec, "resources", "requests").get("storage")
    if storage is None:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        errors += check_amount("storage", storage, f"{path}.resources[storage]")
    return errors


class ClaimStrategy(Strategy):
    has_status = True
    fields = {"name": text_at("metadata", "name")}

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        set_default(spec, "volumeMode", "Filesystem")
        round_requirements(spec.get("resources"))
        _copy_data_source(spec)

    def admit(self, document: Document, context: StrategyContext) -> None:
        """Set the default class; the newest where there are several."""
        spec = document["spec"]
        if spec.get("storageClassName") is not None:
            return
        defaults = [
            each
            for each in context.store.list("storageclasses.storage.k8s.io")
            if part(each, "metadata", "annotations").get(DEFAULT_CLASS) == "true"
        ]
        if defaults:
            newest = max(defaults, key=lambda each: str(each["metadata"]["creationTimestamp"]))
            spec["storageClassName"] = newest["metadata"]["name"]

    def initial_status(self, document: Document) -> Document:
        return {"phase": "Pending"}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check_claim_spec(document["spec"], "spec")

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        now, then = dict(document["spec"]), dict(part(old, "spec"))
        is_bound = bool(then.get("volumeName"))
        mutable = (
            ["resources", "volumeAttributesClassName"] if is_bound else ["resources", "volumeName", "storageClassName"]
        )
        for field in mutable:
            now.pop(field, None)
            then.pop(field, None)
        if now != then:
            why = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
                " claims"
            )
            return [forbidden_field("spec", why)]
        return []


class VolumeStrategy(Strategy):
    has_status = True
    fields = {"name": text_at("metadata", "name")}

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        set_text(spec, "persistentVolumeReclaimPolicy", "Retain")
        set_default(spec, "volumeMode", "Filesystem")
        default_source(spec)
        round_up(spec.get("capacity"))

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp(context.clock.now())}

    def initial_status(self, document: Document) -> Document:
        return {"phase": "Pending"}

    def prepare_status(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_status(document, old, context)
        status, then = ensured(document, "status"), part(old, "status")
        is_dated = status.get("lastPhaseTransitionTime") not in (None, then.get("lastPhaseTransitionTime"))
        if status.get("phase") != then.get("phase") and not is_dated:
            status["lastPhaseTransitionTime"] = timestamp(context.clock.now())

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        errors = _check_access_modes(spec)
        if "storage" not in part(spec, "capacity"):
            errors.append(required("spec.capacity"))
        affinity = part(spec, "nodeAffinity").get("required")
        if affinity is not None:
            errors += check_node_selector(affinity, "spec.nodeAffinity.required")
        return errors


def _copy_data_source(spec: Document) -> None:
    """`dataSource` and `dataSourceRef` default each other, unless the reference is to another namespace."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}


class AttachmentStrategy(Strategy):
    has_status = True

    def initial_status(self, document: Document) -> Document:
        return {"attached": False}


class DriverStrategy(Strategy):
    """CSI drivers."""

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        for field, value in (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            ("seLinuxMount", False),
        ):
            set_default(spec, field, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]


class CSINodeStrategy(Strategy):
    """CSI drivers of nodes. The kubelet of a node without any writes `drivers: null`."""

    nullable = frozenset(["spec.drivers"])


class StorageClassStrategy(Strategy):
    def default(self, document: Document, context: StrategyContext) -> None:
        set_default(document, "reclaimPolicy", "Delete")
        set_default(document, "volumeBindingMode", "Immediate")

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        errors: list[FieldError] = []
        if document["reclaimPolicy"] not in ("Delete", "Retain"):
            errors.append(unsupported("reclaimPolicy", document["reclaimPolicy"], ("Delete", "Retain")))
        mode = document["volumeBindingMode"]
        if mode not in ("Immediate", "WaitForFirstConsumer"):
            errors.append(unsupported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer")))
        return errors

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return [
            forbidden_field(field, "updates to parameters are forbidden.")
            if field == "parameters"
            else invalid_value(field, document.get(field), "field is immutable")
            for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
            if document.get(field) != old.get(field)
        ]
