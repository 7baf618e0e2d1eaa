"""Jobs and cron jobs."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, metadata_of, part
from mooring.apiserver.status import FieldError, invalid_value, required
from mooring.apiserver.strategies.base import Strategy, World, set_default, spec_of, text_at
from mooring.apiserver.strategies.pod_defaults import default_pod_spec
from mooring.apiserver.strategies.workloads import check_template

_RUN_TO_END = ("Never", "OnFailure")


def default_job_spec(spec: Document) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    set_default(spec, "parallelism", 1)
    set_default(spec, "backoffLimit", 6)
    set_default(spec, "completionMode", "NonIndexed")
    set_default(spec, "suspend", False)
    set_default(spec, "podReplacementPolicy", "TerminatingOrFailed")
    set_default(spec, "manualSelector", False)
    default_pod_spec(ensured(ensured(spec, "template"), "spec"))


class JobStrategy(Strategy):
    """A job selects its own pods: by its uid, written into selector and template when it is created."""

    has_status = True
    has_generation = True
    checks_required = False
    fields = {"status.successful": text_at("status", "succeeded")}

    def default(self, document: Document, world: World) -> None:
        default_job_spec(spec_of(document))

    def prepare_create(self, document: Document, world: World) -> None:
        super().prepare_create(document, world)
        spec, metadata = document["spec"], metadata_of(document)
        if not spec.get("manualSelector"):
            labels = ensured(metadata_of(spec["template"]), "labels")
            labels |= {
                "batch.kubernetes.io/controller-uid": metadata["uid"],
                "batch.kubernetes.io/job-name": metadata.get("name", ""),
                "controller-uid": metadata["uid"],
                "job-name": metadata.get("name", ""),
            }
            spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": metadata["uid"]}}

    def validate(self, document: Document, world: World) -> list[FieldError]:
        return check_template(document["spec"]["template"], "spec.template", _RUN_TO_END)

    def validate_update(self, document: Document, old: Document, world: World) -> list[FieldError]:
        wrong = self.validate(document, world)
        now, then = document["spec"], part(old, "spec")
        for field in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"):
            if now.get(field) != then.get(field):
                wrong.append(invalid_value(f"spec.{field}", now.get(field), "field is immutable"))
        # A suspended job that never started may still change where its pods go.
        is_waiting = then.get("suspend") and not part(old, "status").get("startTime")
        if not is_waiting and now.get("template") != then.get("template"):
            wrong.append(invalid_value("spec.template", now.get("template"), "field is immutable"))
        return wrong


class CronJobStrategy(Strategy):
    has_status = True
    has_generation = True
    checks_required = False

    def default(self, document: Document, world: World) -> None:
        spec = spec_of(document)
        set_default(spec, "concurrencyPolicy", "Allow")
        set_default(spec, "suspend", False)
        set_default(spec, "successfulJobsHistoryLimit", 3)
        set_default(spec, "failedJobsHistoryLimit", 1)
        default_pod_spec(ensured(ensured(ensured(ensured(spec, "jobTemplate"), "spec"), "template"), "spec"))

    def validate(self, document: Document, world: World) -> list[FieldError]:
        spec = document["spec"]
        wrong = [] if spec.get("schedule") else [required("spec.schedule")]
        template = spec["jobTemplate"]["spec"]["template"]
        return wrong + check_template(template, "spec.jobTemplate.spec.template", _RUN_TO_END)
