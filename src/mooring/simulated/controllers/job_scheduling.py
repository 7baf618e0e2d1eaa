"""Gang scheduling of Jobs (gate WorkloadWithJob): the Workload and the PodGroup of a Job whose pods all run at once.

Anything unexpected, such as several Workloads or one that another object owns, leaves the Job with ordinary pods.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.objects.meta import OwnerReference
from mooring.simulated.controllers.pod_templates import safe_encoded
from mooring.simulated.controllers.workload_records import Job
from mooring.simulated.records import Document, PodGroupRecord, PodRecord, WorkloadRecord, owned_by

LONGEST_NAME = 253
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def is_gang_candidate(job: Job) -> bool:
    """All pods of the Job run at once, each with an index, and their template names no group."""
    spec = job.spec
    return (
        spec.parallelism > 1
        and spec.completion_mode == "Indexed"
        and spec.completions == spec.parallelism
        and not (spec.template.get("spec") or {}).get("schedulingGroup")
    )


def is_new(job: Job, pods: Sequence[PodRecord]) -> bool:
    status = job.status
    has_run = pods or status.start_time or status.succeeded or status.failed
    return not has_run and all(condition.type != "Suspended" for condition in status.conditions)


def workload_of(job: Job) -> Document:
    suffix = _hash(job.uid)
    gang = {"gang": {"minCount": job.spec.parallelism}}
    return {
        "metadata": {
            "name": f"{job.name[: LONGEST_NAME - len(suffix) - 1]}-{suffix}",
            "ownerReferences": owned_by(job),
        },
        "spec": {
            "controllerRef": {"apiGroup": Job.KIND.group, "kind": Job.KIND.kind, "name": job.name},
            "podGroupTemplates": [{"name": f"{job.name}-pgt-0", "schedulingPolicy": gang}],
        },
    }


def pod_group_of(job: Job, workload: WorkloadRecord) -> Document:
    [template] = workload.spec.pod_group_templates
    owner = {
        "apiVersion": WorkloadRecord.KIND.api_version,
        "kind": WorkloadRecord.KIND.kind,
        "name": workload.name,
        "uid": workload.uid,
    }
    reference = {"workloadName": workload.name, "podGroupTemplateName": template.name}
    return {
        "metadata": {
            "name": pod_group_name(workload.name, template.name),
            "ownerReferences": [*owned_by(job), owner],
        },
        "spec": {
            "podGroupTemplateRef": {"workload": reference},
            "schedulingPolicy": msgspec.to_builtins(template.scheduling_policy),
        },
    }


def pod_group_name(workload: str, template: str) -> str:
    suffix = _hash(workload + template)
    most = LONGEST_NAME - len(suffix) - 2
    if len(workload) + len(template) > most:
        half = most // 2
        if len(workload) <= half:
            template = template[: most - len(workload)]
        elif len(template) <= half:
            workload = workload[: most - len(template)]
        else:
            workload, template = workload[: most - half], template[:half]
    return f"{workload}-{template}-{suffix}"


class JobScheduling:
    """Creates the Workload and the PodGroup of Jobs, once for each Job."""

    def __init__(
        self,
        client: ApiClient,
        workloads: Informer[WorkloadRecord],
        groups: Informer[PodGroupRecord],
        events: CoreEventRecorder,
        source: EventSource,
    ) -> None:
        self._client = client
        self._workloads = workloads
        self._groups = groups
        self._events = events
        self._source = source
        self._workloads_of_job = workloads.indexed(_job_of)
        self._groups_of_workload = groups.indexed(_workload_of)

    async def group_name(self, job: Job, pods: Sequence[PodRecord]) -> str | None:
        """The PodGroup of the Job's pods, created where the Job is new; None: the pods are scheduled one by one."""
        if not is_gang_candidate(job):
            return None
        workload = await self._workload(job, pods)
        group = None if workload is None else await self._group(job, workload)
        return None if group is None else group.name

    async def _workload(self, job: Job, pods: Sequence[PodRecord]) -> WorkloadRecord | None:
        found = list(self._workloads_of_job.at(job.key))
        if not found and is_new(job, pods):
            body = await self._client.create(WorkloadRecord.KIND, workload_of(job), job.namespace)
            created = msgspec.convert(body, WorkloadRecord)
            self._workloads.cache_write(created)
            message = f"Created Workload {created.name} for Job {job.name}"
            self._events.record(job, self._source, "WorkloadCreated", message)
            return created
        if len(found) != 1 or not _is_controlled_by(found[0].metadata.owner_references, job):
            return None
        return found[0] if len(found[0].spec.pod_group_templates) == 1 else None

    async def _group(self, job: Job, workload: WorkloadRecord) -> PodGroupRecord | None:
        found = list(self._groups_of_workload.at(workload.key))
        if not found:
            body = await self._client.create(PodGroupRecord.KIND, pod_group_of(job, workload), job.namespace)
            created = msgspec.convert(body, PodGroupRecord)
            self._groups.cache_write(created)
            return created
        is_ours = len(found) == 1 and _is_controlled_by(found[0].metadata.owner_references, job)
        return found[0] if is_ours else None


def _is_controlled_by(owners: Sequence[OwnerReference], job: Job) -> bool:
    return any(owner.controller and owner.uid == job.uid for owner in owners)


def _job_of(workload: WorkloadRecord) -> list[str]:
    reference = workload.spec.controller_ref
    is_job = reference is not None and (reference.api_group, reference.kind) == (Job.KIND.group, Job.KIND.kind)
    return [f"{workload.namespace}/{reference.name}"] if reference is not None and is_job else []


def _workload_of(group: PodGroupRecord) -> list[str]:
    reference = group.spec.pod_group_template_ref
    workload = None if reference is None else reference.workload
    return [] if workload is None else [f"{group.namespace}/{workload.workload_name}"]


def _hash(text: str) -> str:
    """FNV-1a of 32 bits, as names in Kubernetes carry it."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return safe_encoded(str(value))
