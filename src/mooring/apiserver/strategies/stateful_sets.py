"""StatefulSets: pods with stable names, and claims from templates."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, items_of, part
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import StrategyContext, set_default, set_text
from mooring.apiserver.strategies.volumes import check_claim_spec
from mooring.apiserver.strategies.workloads import WorkloadStrategy
from mooring.apiserver.validation.checks import broken
from mooring.apiserver.validation.rollouts import check_not_negative
from mooring.objects.names import dns_label

POD_MANAGEMENT = ("OrderedReady", "Parallel")
UPDATE_TYPES = ("RollingUpdate", "OnDelete")
RETENTION = ("Retain", "Delete")


class StatefulSetStrategy(WorkloadStrategy):
    word = "statefulset"
    title = "StatefulSet"
    MUTABLE = (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )

    def name_rule(self, name: str) -> list[str]:
        return dns_label(name)

    def default_spec(self, spec: Document) -> None:
        set_text(spec, "podManagementPolicy", "OrderedReady")
        set_default(spec, "serviceName", "")
        update = ensured(spec, "updateStrategy")
        set_text(update, "type", "RollingUpdate")
        if update["type"] == "RollingUpdate":
            set_default(ensured(update, "rollingUpdate"), "partition", 0)
        set_default(spec, "revisionHistoryLimit", 10)
        if isinstance(ordinals := spec.get("ordinals"), dict):
            set_default(ordinals, "start", 0)
        retention = ensured(spec, "persistentVolumeClaimRetentionPolicy")
        set_default(retention, "whenDeleted", "Retain")
        set_default(retention, "whenScaled", "Retain")
        for claim in items_of(spec, "volumeClaimTemplates"):
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            set_default(ensured(claim, "spec"), "volumeMode", "Filesystem")
            claim["status"] = {"phase": "Pending"}
        # Behind MaxUnavailableStatefulSet, which is off: the field is dropped, and one pod is replaced at a time.
        part(update, "rollingUpdate").pop("maxUnavailable", None)

    def initial_status(self, document: Document) -> Document:
        return {"replicas": 0, "availableReplicas": 0}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        errors: list[FieldError] = []
        for index, claim in enumerate(items_of(spec, "volumeClaimTemplates")):
            errors += check_claim_spec(part(claim, "spec"), f"spec.volumeClaimTemplates[{index}].spec")
        if spec.get("serviceName"):
            errors += broken(dns_label, spec["serviceName"], "spec.serviceName")
        return self._check_policies(spec) + errors + super().validate(document, context)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        now, then = document["spec"], part(old, "spec")
        errors = self._check_policies(now) + super().validate(document, context)
        if any(now.get(field) != then.get(field) for field in now.keys() | then.keys() if field not in self.MUTABLE):
            why = (
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
                " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and"
                " 'minReadySeconds' are forbidden"
            )
            errors.append(forbidden_field("spec", why))
        return errors

    def template_of(self, spec: Document) -> Document:
        """The template with the volumes of the claim templates, which replace volumes of the same names."""
        template: Document = spec["template"]
        names = [part(claim, "metadata").get("name", "") for claim in items_of(spec, "volumeClaimTemplates")]
        if not names:
            return template
        of_claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)]
        pod = part(template, "spec")
        others = [volume for volume in items_of(pod, "volumes") if volume.get("name") not in names]
        return {**template, "spec": {**pod, "volumes": of_claims + others}}

    def _check_policies(self, spec: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        management = spec["podManagementPolicy"]
        if management not in POD_MANAGEMENT:
            why = "must be 'OrderedReady' or 'Parallel'"
            errors.append(invalid_value("spec.podManagementPolicy", management, why))
        errors += self._check_update_strategy(spec["updateStrategy"], "spec.updateStrategy")
        retention = spec["persistentVolumeClaimRetentionPolicy"]
        for field in ("whenDeleted", "whenScaled"):
            if retention[field] not in RETENTION:
                path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
                errors.append(unsupported(path, retention[field], RETENTION))
        return errors + check_not_negative(part(spec, "ordinals").get("start"), "spec.ordinals.start")

    def _check_update_strategy(self, update: Document, path: str) -> list[FieldError]:
        if not update["type"]:
            return [required(path)]
        if update["type"] not in UPDATE_TYPES:
            return [invalid_value(path, update, "must be 'RollingUpdate' or 'OnDelete'")]
        rolling = update.get("rollingUpdate")
        if update["type"] == "OnDelete" and rolling is not None:
            return [invalid_value(f"{path}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'")]
        return check_not_negative(part(update, "rollingUpdate").get("partition"), f"{path}.rollingUpdate.partition")
