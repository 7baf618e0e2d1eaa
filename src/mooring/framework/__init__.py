"""The contract that plugin authors see. `from mooring.framework import Plugin, Args, …` is all a plugin needs.

`points` documents every extension point, `services` what a constructor may take, `cycle` and `nodes` what can be read
during a decision, `verdicts` what can be returned, `events` which events requeue a refused pod.
"""

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.framework.api_version import API_VERSION
from mooring.framework.args import Args, ArgsPart, Meta
from mooring.framework.claims import ClaimsInFlight
from mooring.framework.cycle import (
    ALL_NODES,
    Cycle,
    DomainCounts,
    Image,
    NodesWhere,
    PodsWhere,
    Tally,
    Term,
)
from mooring.framework.events import Action, ClusterEvent, Hint
from mooring.framework.gates import FeatureGates
from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.normalizers import Normalizer, ToMax
from mooring.framework.plugin import Plugin, Reads
from mooring.framework.pod_groups import (
    Assignment,
    GroupPlacement,
    PodGroupInfo,
    PodGroupPlan,
    PodGroupTrial,
    ProposedPlacement,
)
from mooring.framework.points import Point
from mooring.framework.queued_pod import QueuedPod
from mooring.framework.resource_metrics import NodeUse, ResourceMetrics
from mooring.framework.services import (
    Background,
    Binder,
    ClaimWriter,
    Http,
    HttpResponse,
    Metrics,
    Objects,
    PodEvents,
    PodGroupMembers,
    PodGroups,
    Pods,
    PodWriter,
    Preemptions,
    ProblemReports,
    Published,
    Queue,
    VolumeWriter,
    WaitingPod,
    WaitingPods,
)
from mooring.framework.verdicts import (
    PENDING,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Allow,
    BoolArray,
    Bound,
    Candidate,
    Code,
    IntArray,
    OnlyNodes,
    Plan,
    PostFilterRefusal,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    Wait,
    constant_score,
)
from mooring.framework.what_if import Diagnosis, Evicted, LowerPriorityPods, Victims, WhatIf
from mooring.objects import CustomResource, Node, Pod, ResourcePart
from mooring.objects.placed import PlacedPod
from mooring.objects.pod_affinity import TermKind

__all__ = [
    "ALL_NODES",
    "API_VERSION",
    "PENDING",
    "UNRESOLVABLE",
    "UNSCHEDULABLE",
    "Action",
    "Allow",
    "ApiError",
    "Args",
    "ArgsPart",
    "Assignment",
    "Background",
    "Binder",
    "BoolArray",
    "Bound",
    "Candidate",
    "ClaimWriter",
    "ClaimsInFlight",
    "Clock",
    "ClusterEvent",
    "Code",
    "CustomResource",
    "Cycle",
    "Diagnosis",
    "DomainCounts",
    "Evicted",
    "Fault",
    "FeatureGates",
    "GroupPlacement",
    "Hint",
    "Http",
    "HttpResponse",
    "Image",
    "IntArray",
    "Log",
    "LowerPriorityPods",
    "Meta",
    "Metrics",
    "Node",
    "NodeRows",
    "NodeUse",
    "NodeView",
    "NodesWhere",
    "Normalizer",
    "Objects",
    "OnlyNodes",
    "PlacedPod",
    "Plan",
    "Plugin",
    "Pod",
    "PodEvents",
    "PodGroupInfo",
    "PodGroupMembers",
    "PodGroupPlan",
    "PodGroupTrial",
    "PodGroups",
    "PodWriter",
    "Pods",
    "PodsWhere",
    "Point",
    "PostFilterRefusal",
    "Preemptions",
    "ProblemReports",
    "ProposedPlacement",
    "Published",
    "Queue",
    "QueuedPod",
    "Reads",
    "Refusal",
    "Rejection",
    "Rejections",
    "ResourceMetrics",
    "ResourcePart",
    "Skip",
    "Tally",
    "Term",
    "TermKind",
    "ToMax",
    "Victims",
    "VolumeWriter",
    "Wait",
    "WaitingPod",
    "WaitingPods",
    "WhatIf",
    "constant_score",
]
