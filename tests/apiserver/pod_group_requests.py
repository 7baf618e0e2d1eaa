"""Requests about PodGroups, Workloads and pods of groups; what kube-apiserver v1.36.4 responds to them is recorded.

A scenario is a list of steps that are sent one after the other, to a server with the gates of its set.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.apiserver.stored import comparable

Document = dict[str, Any]

RECORDED = Path(__file__).parents[1] / "data" / "apiserver" / "pod_groups.json"
"""By set of gates and scenario: the status code and the message, or the object, of each step."""

PARTS = ("TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption", "DRAWorkloadResourceClaims")
GATE_SETS: dict[str, tuple[str, ...]] = {
    "all": ("GenericWorkload", "GangScheduling", *PARTS, "WorkloadWithJob"),
    "generic": ("GenericWorkload",),
}

BASE = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default"
GROUPS, WORKLOADS = f"{BASE}/podgroups", f"{BASE}/workloads"
PODS, JOBS = "/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Step(NamedTuple):
    method: str
    path: str
    body: Any
    content: str = "application/json"


def gang(count: int = 2) -> Document:
    return {"schedulingPolicy": {"gang": {"minCount": count}}}


BASIC: Document = {"schedulingPolicy": {"basic": {}}}


def group(spec: Any, name: str = "NAME", **metadata: Any) -> Step:
    return Step("POST", GROUPS, _document("scheduling.k8s.io/v1alpha2", "PodGroup", name, spec, **metadata))


def workload(spec: Any, name: str = "NAME") -> Step:
    return Step("POST", WORKLOADS, _document("scheduling.k8s.io/v1alpha2", "Workload", name, spec))


def pod(spec: Document) -> Step:
    return Step("POST", PODS, _document("v1", "Pod", "NAME", {"containers": [{"name": "a", "image": "a"}], **spec}))


def priority_class(value: int) -> Step:
    document = _document("scheduling.k8s.io/v1", "PriorityClass", "NAME", None)
    return Step("POST", CLASSES, {**document, "value": value})


def job(**spec: Any) -> Step:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}], **spec}}
    body = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    return Step("POST", JOBS, _document("batch/v1", "Job", "NAME", body))


def merge(path: str, body: Document) -> Step:
    return Step("PATCH", path, body, "application/merge-patch+json")


def change(spec: Document) -> Step:
    return merge(f"{GROUPS}/NAME", {"spec": spec})


def status(body: Document) -> Step:
    return merge(f"{GROUPS}/NAME/status", {"status": body})


def _document(version: str, kind: str, name: str, spec: Any, **metadata: Any) -> Document:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
    return document if spec is None else {**document, "spec": spec}


def templates(*entries: Document) -> Document:
    return {"podGroupTemplates": list(entries)}


def template(name: str = "t", **spec: Any) -> Document:
    return {"name": name, **gang(), **spec}


def claims(*entries: Document) -> Document:
    return {**gang(), "resourceClaims": list(entries)}


def topology(*keys: str) -> Document:
    return {**gang(), "schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


def reference(workload: Any, template: Any) -> Document:
    names = {"workloadName": workload, "podGroupTemplateName": template}
    return {**BASIC, "podGroupTemplateRef": {"workload": names}}


WHEN = "2026-01-01T00:00:00Z"
CONDITION = {
    "type": "PodGroupScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": WHEN,
}

SCENARIOS: dict[str, list[Step]] = {
    "a gang": [group(gang())],
    "a basic group": [group(BASIC)],
    "a group with everything": [
        group(
            {
                **topology("example.com/rack"),
                "disruptionMode": "PodGroup",
                "resourceClaims": [{"name": "link", "resourceClaimTemplateName": "links"}],
            }
        )
    ],
    "a group with a status": [
        Step("POST", GROUPS, {**group(gang()).body, "status": {"conditions": [CONDITION]}}),
    ],
    "a group without a spec": [group(None)],
    "a group without a policy": [group({})],
    "two policies": [group({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}})],
    "a gang of none": [group(gang(0))],
    "a gang without a count": [group({"schedulingPolicy": {"gang": {}}})],
    "a gang of a negative count": [group(gang(-1))],
    "a name that is none": [group(gang(), name="Not_A_Name")],
    "two topology constraints": [group(topology("a", "b"))],
    "a topology constraint without a key": [group(topology(""))],
    "a topology key that is no label key": [group(topology("a b"))],
    "an unknown disruption mode": [group({**gang(), "disruptionMode": "All"})],
    "a claim of two sources": [
        group(claims({"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}))
    ],
    "a claim without a source": [group(claims({"name": "a"}))],
    "a claim without a name": [group(claims({"resourceClaimName": "b"}))],
    "a claim whose names are none": [group(claims({"name": "A", "resourceClaimName": "B_"}))],
    "claims of one name": [
        group(claims({"name": "a", "resourceClaimName": "b"}, {"name": "a", "resourceClaimName": "c"}))
    ],
    "five claims": [group(claims(*({"name": f"c{at}", "resourceClaimName": "b"} for at in range(5))))],
    "an empty reference to a template": [group({**BASIC, "podGroupTemplateRef": {}})],
    "a Workload that does not exist": [group(reference("nowhere", "t"))],
    "a template that does not exist": [workload(templates(template())), group(reference("NAME", "other"))],
    "a template that exists": [workload(templates(template())), group(reference("NAME", "t"))],
    "a reference without names": [group(reference("", ""))],
    "a priority class": [priority_class(7), group({**gang(), "priorityClassName": "NAME"})],
    "a priority class that does not exist": [group({**gang(), "priorityClassName": "nowhere"})],
    "a priority without a class": [group({**gang(), "priority": 7})],
    "the priority of the class": [
        priority_class(8),
        group({**gang(), "priorityClassName": "NAME", "priority": 8}),
    ],
    "a finalizer of its own": [group(gang(), finalizers=["example.com/mine"])],
    "the spec is immutable": [
        group({**topology("rack"), "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}),
        change(gang(3)),
        change({"schedulingPolicy": {"basic": {}}}),
        change({"schedulingConstraints": {"topology": [{"key": "zone"}]}}),
        change({"schedulingConstraints": None}),
        change({"resourceClaims": None}),
        change({"disruptionMode": "PodGroup"}),
        change({"priority": 9}),
        change({"podGroupTemplateRef": {"workload": {"workloadName": "a", "podGroupTemplateName": "b"}}}),
        merge(f"{GROUPS}/NAME", {"metadata": {"labels": {"a": "b"}}}),
    ],
    "a status": [
        group(claims({"name": "link", "resourceClaimTemplateName": "links"})),
        status({"conditions": [CONDITION], "resourceClaimStatuses": [{"name": "link", "resourceClaimName": "x"}]}),
        merge(f"{GROUPS}/NAME/status", {"metadata": {"labels": {"a": "b"}}, "spec": gang(9)}),
        merge(f"{GROUPS}/NAME", {"status": {"conditions": None}}),
    ],
    "a condition without anything": [group(gang()), status({"conditions": [{"type": "a", "status": "x"}]})],
    "a condition with a bad reason": [group(gang()), status({"conditions": [{**CONDITION, "reason": "not so"}]})],
    "two conditions of one type": [group(gang()), status({"conditions": [CONDITION, CONDITION]})],
    "a claim status of no claim": [
        group(gang()),
        status({"resourceClaimStatuses": [{"name": "link", "resourceClaimName": "X"}]}),
    ],
    "a Workload": [workload({**templates(template()), "controllerRef": {"kind": "Job", "name": "j"}})],
    "a Workload without templates": [workload({}), workload(None)],
    "a Workload with nine templates": [workload(templates(*(template(f"t{at}") for at in range(9))))],
    "templates of one name": [workload(templates(template(), template()))],
    "a template without a name and a policy": [workload(templates({"schedulingPolicy": {}}))],
    "a template with a bad name": [workload(templates(template("a.b")))],
    "a template with everything": [
        workload(templates(template(**topology("rack"), disruptionMode="Pod", priority=5, priorityClassName="c")))
    ],
    "a template with too much priority": [workload(templates(template(priority=1_000_000_001)))],
    "a controller that is none": [
        workload({**templates(template()), "controllerRef": {"apiGroup": "A B", "kind": "a/b", "name": ""}})
    ],
    "the spec of a Workload is immutable": [
        workload(templates(template())),
        merge(f"{WORKLOADS}/NAME", {"spec": templates(template("u"))}),
        merge(f"{WORKLOADS}/NAME", {"spec": {"controllerRef": {"kind": "Job", "name": "j"}}}),
    ],
    "a pod of a group": [pod({"schedulingGroup": {"podGroupName": "anything"}})],
    "a pod of a group without a name": [pod({"schedulingGroup": {}})],
    "a pod of a group with a bad name": [pod({"schedulingGroup": {"podGroupName": "A_"}})],
    "the parallelism of a gang": [
        group(gang()),
        job(schedulingGroup={"podGroupName": "NAME"}),
        merge(f"{JOBS}/NAME", {"spec": {"parallelism": 3}}),
    ],
    "the parallelism of a basic group": [
        group(BASIC),
        job(schedulingGroup={"podGroupName": "NAME"}),
        merge(f"{JOBS}/NAME", {"spec": {"parallelism": 1}}),
    ],
}


def steps_of(scenario: str) -> list[Step]:
    """Its steps, with a name of its own in place of NAME."""
    name = f"case-{list(SCENARIOS).index(scenario)}"

    def named(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("NAME", name))

    return [Step(step.method, named(step.path), named(step.body), step.content) for step in SCENARIOS[scenario]]


def response(code: int, body: Document) -> list[Any]:
    """A response as it is recorded: the code, and the message or what is stored."""
    if body.get("kind") == "Status":
        return [code, body["message"]]
    found = comparable(body)
    for field in ("serviceAccount", "serviceAccountName"):  # of an admission plugin that is off where it is recorded
        found.get("spec", {}).pop(field, None)
    return [code, found]
