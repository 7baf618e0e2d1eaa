"""Columns of workloads."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.tables.ages import age, human_duration
from mooring.apiserver.tables.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    UNKNOWN,
    PrinterColumn,
    at,
    column,
    integer,
    labels_text,
    text,
)
from mooring.base.clock import parse_timestamp
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED


def _ready(document: Document) -> str:
    ready = at(document, "status", "readyReplicas") or 0
    return f"{ready}/{at(document, 'spec', 'replicas') or 0}"


def _completions(job: Document) -> str:
    done = at(job, "status", "succeeded") or 0
    wanted, parallel = at(job, "spec", "completions"), at(job, "spec", "parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Document, now: float) -> str:
    start, end = at(job, "status", "startTime"), at(job, "status", "completionTime")
    if not start:
        return ""
    return human_duration((parse_timestamp(end) if end else now) - parse_timestamp(start))


def _job_status(job: Document) -> str:
    true = {each.get("type") for each in items_of(part(job, "status"), "conditions") if each.get("status") == "True"}
    for word in ("Complete", "Failed"):
        if word in true:
            return word
    if part(job, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next((word for word in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if word in true), "Running")


def _last_schedule(cron: Document, now: float) -> str:
    last = at(cron, "status", "lastScheduleTime")
    return age(last, now) if last else NONE


def _replicas() -> list[PrinterColumn]:
    return [
        integer("Desired", "spec", "replicas"),
        integer("Current", "status", "replicas"),
        integer("Ready", "status", "readyReplicas"),
    ]


def _controller(document: Document) -> str:
    for owner in items_of(part(document, "metadata"), "ownerReferences"):
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner['kind'].lower()}.{group}" if group else owner["kind"].lower()
            return f"{kind}/{owner['name']}"
    return NONE


def _scaled(autoscaler: Document) -> str:
    target = part(autoscaler, "spec", "scaleTargetRef")
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _group_status(group: Document) -> str:
    conditions = {each.get("type"): each for each in items_of(part(group, "status"), "conditions")}
    if (disrupted := conditions.get("DisruptionTarget")) is not None:
        return str(disrupted.get("reason") or "")
    scheduled = conditions.get(POD_GROUP_SCHEDULED)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


WORKLOAD_COLUMNS: dict[str, list[PrinterColumn]] = {
    "deployments.apps": [
        NAME,
        column("Ready", _ready),
        integer("Up-to-date", "status", "updatedReplicas"),
        integer("Available", "status", "availableReplicas"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    "replicasets.apps": [NAME, *_replicas(), AGE, CONTAINERS, IMAGES, SELECTOR],
    "replicationcontrollers": [
        NAME,
        *_replicas(),
        AGE,
        CONTAINERS,
        IMAGES,
        column("Selector", lambda document: labels_text(at(document, "spec", "selector")), wide=True),
    ],
    "statefulsets.apps": [NAME, column("Ready", _ready), AGE, CONTAINERS, IMAGES],
    "daemonsets.apps": [
        NAME,
        integer("Desired", "status", "desiredNumberScheduled"),
        integer("Current", "status", "currentNumberScheduled"),
        integer("Ready", "status", "numberReady"),
        integer("Up-to-date", "status", "updatedNumberScheduled"),
        integer("Available", "status", "numberAvailable"),
        column("Node Selector", lambda each: labels_text(at(each, "spec", "template", "spec", "nodeSelector"))),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    "jobs.batch": [
        NAME,
        column("Status", _job_status),
        column("Completions", _completions),
        PrinterColumn("Duration", _duration),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    "cronjobs.batch": [
        NAME,
        text("Schedule", "spec", "schedule"),
        text("Timezone", "spec", "timeZone", otherwise=NONE),
        column("Suspend", lambda cron: str(bool(at(cron, "spec", "suspend"))), type="boolean"),
        column("Active", lambda cron: len(items_of(part(cron, "status"), "active")), type="integer"),
        PrinterColumn("Last Schedule", _last_schedule),
        AGE,
    ],
    "controllerrevisions.apps": [NAME, column("Controller", _controller), integer("Revision", "revision"), AGE],
    "poddisruptionbudgets.policy": [
        NAME,
        column("Min Available", lambda budget: str(_or_na(at(budget, "spec", "minAvailable")))),
        column("Max Unavailable", lambda budget: str(_or_na(at(budget, "spec", "maxUnavailable")))),
        integer("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ],
    "podgroups.scheduling.k8s.io": [
        NAME,
        column("Policy", lambda group: "Basic" if at(group, "spec", "schedulingPolicy", "gang") is None else "Gang"),
        text("Workload", "spec", "podGroupTemplateRef", "workload", "workloadName", otherwise=NONE),
        column("Status", _group_status),
        AGE,
    ],
    "horizontalpodautoscalers.autoscaling": [
        NAME,
        column("Reference", _scaled),
        column("Targets", lambda each: UNKNOWN if items_of(part(each, "spec"), "metrics") else NONE),
        text("MinPods", "spec", "minReplicas", otherwise="<unset>"),
        integer("MaxPods", "spec", "maxReplicas"),
        integer("Replicas", "status", "currentReplicas"),
        AGE,
    ],
}


def _or_na(value: object) -> object:
    return "N/A" if value is None else value
