"""Jobs and cron jobs."""

from __future__ import annotations

from mooring.apiserver.disabled_fields import GENERIC_WORKLOAD, POD_GROUPS
from mooring.apiserver.documents import Document, ensured, items_of, metadata_of, part
from mooring.apiserver.status import FieldError, forbidden, invalid_value, quoted, required, unsupported
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, set_text, spec_of, text_at
from mooring.apiserver.strategies.pod_defaults import default_pod_spec
from mooring.apiserver.strategies.workloads import check_template
from mooring.apiserver.validation.rollouts import check_not_negative
from mooring.base.cron import BadSchedule, UnknownTimeZone, parse_schedule, time_zone

CONCURRENCY = ("Allow", "Forbid", "Replace")
_RUN_TO_END = ("Never", "OnFailure")
_UNLIMITED = 2**31 - 1
"""A Job with a backoff limit per index has no total limit."""


def default_job_spec(spec: Document) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    set_default(spec, "parallelism", 1)
    set_default(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _UNLIMITED)
    set_default(spec, "completionMode", "NonIndexed")
    set_default(spec, "suspend", False)
    failures = spec.get("podFailurePolicy")
    set_default(spec, "podReplacementPolicy", "TerminatingOrFailed" if failures is None else "Failed")
    for rule in items_of(failures or {}, "rules"):
        for condition in items_of(rule, "onPodConditions"):
            set_text(condition, "status", "True")
    set_default(spec, "manualSelector", False)
    default_pod_spec(ensured(ensured(spec, "template"), "spec"))


class JobStrategy(Strategy):
    """A Job selects its own pods by its uid, which is set in selector and template at creation."""

    has_status = True
    has_generation = True
    checks_required = False
    fields = {"status.successful": text_at("status", "succeeded")}

    def default(self, document: Document, context: StrategyContext) -> None:
        default_job_spec(spec_of(document))

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
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
        if not metadata.get("labels") and (labels := part(spec["template"], "metadata", "labels")):
            metadata["labels"] = dict(labels)

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        _keeps_gang(document, old, context)
        super().prepare_update(document, old, context)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check_template(document["spec"]["template"], "spec.template", _RUN_TO_END)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        errors = self.validate(document, context)
        now, then = document["spec"], part(old, "spec")
        for field in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"):
            if now.get(field) != then.get(field):
                errors.append(invalid_value(f"spec.{field}", now.get(field), "field is immutable"))
        # The scheduling directives of a suspended Job that never started are mutable.
        is_waiting = then.get("suspend") and not part(old, "status").get("startTime")
        if not is_waiting and now.get("template") != then.get("template"):
            errors.append(invalid_value("spec.template", now.get("template"), "field is immutable"))
        return errors


def _keeps_gang(job: Document, old: Document, context: StrategyContext) -> None:
    """JobValidation: a gang's size is immutable, so is the parallelism of a Job whose pods are one."""
    if GENERIC_WORKLOAD not in context.features or job["spec"].get("parallelism") == old["spec"].get("parallelism"):
        return
    metadata = part(old, "metadata")
    name = part(old, "spec", "template", "spec", "schedulingGroup").get("podGroupName")
    groups: list[Document | None] = (
        [context.store.get(POD_GROUPS, metadata["namespace"], name)]
        if name
        else [
            group
            for group in context.store.list(POD_GROUPS, metadata["namespace"])
            if any(
                owner.get("controller") and owner.get("uid") == metadata["uid"]
                for owner in items_of(part(group, "metadata"), "ownerReferences")
            )
        ]
    )
    for group in groups:
        if group is not None and part(group, "spec", "schedulingPolicy").get("gang") is not None:
            shown = quoted(group["metadata"]["name"])
            why = f"cannot change parallelism for a Job referencing gang-scheduled PodGroup {shown}"
            raise forbidden("batch", "jobs", metadata["name"], why)


class CronJobStrategy(Strategy):
    has_status = True
    has_generation = True
    checks_required = False
    LONGEST_NAME = 52
    """Names are limited: a suffix makes the names of its Jobs, which become labels."""

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        set_text(spec, "concurrencyPolicy", "Allow")
        set_default(spec, "suspend", False)
        set_default(spec, "successfulJobsHistoryLimit", 3)
        set_default(spec, "failedJobsHistoryLimit", 1)
        default_pod_spec(ensured(ensured(ensured(ensured(spec, "jobTemplate"), "spec"), "template"), "spec"))

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        errors: list[FieldError] = []
        name = metadata_of(document).get("name") or ""
        if len(name) > self.LONGEST_NAME:
            errors.append(invalid_value("metadata.name", name, f"must be no more than {self.LONGEST_NAME} characters"))
        spec = document["spec"]
        return errors + _check_schedule(spec) + self._check_spec(spec)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return _check_schedule(document["spec"], part(old, "spec")) + self._check_spec(document["spec"])

    def _check_spec(self, spec: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            errors += check_not_negative(spec.get(field), f"spec.{field}")
        if spec["concurrencyPolicy"] not in CONCURRENCY:
            errors.append(unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], CONCURRENCY))
        job = spec["jobTemplate"]["spec"]
        if job.get("selector") is not None:
            why = "`selector` will be auto-generated"
            errors.append(invalid_value("spec.jobTemplate.spec.selector", job["selector"], why))
        return errors + check_template(job["template"], "spec.jobTemplate.spec.template", _RUN_TO_END)


def _check_schedule(spec: Document, old: Document | None = None) -> list[FieldError]:
    """Validate schedule and time zone; values that earlier versions of Kubernetes accepted may stay."""
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    errors: list[FieldError] = []
    if not schedule:
        errors.append(required("spec.schedule"))
    elif "TZ" in schedule:
        if old is None or "TZ" not in (old.get("schedule") or ""):
            why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid_value("spec.schedule", schedule, why))
    else:
        try:
            parse_schedule(schedule)
        except BadSchedule as error:
            errors.append(invalid_value("spec.schedule", schedule, str(error)))
    if zone is not None and (old is None or old.get("timeZone") != zone):
        errors += _check_time_zone(zone, "spec.timeZone")
    return errors


def _check_time_zone(zone: str, path: str) -> list[FieldError]:
    if not zone:
        return [invalid_value(path, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid_value(path, zone, why)]
    try:
        time_zone(zone)
    except UnknownTimeZone as error:
        return [invalid_value(path, zone, str(error))]
    return []
