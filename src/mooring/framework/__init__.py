"""The contract that plugin authors see. `from mooring.framework import Plugin, Args, …` is all a plugin needs.

`points` documents every extension point, `services` what a constructor may ask for, `cycle` and `nodes` what can be
read during a decision, `verdicts` what can be answered, `events` how a refused pod is woken.
"""

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.framework.args import Args, ArgsPart, Meta
from mooring.framework.cycle import (
    ALL_NODES,
    Cycle,
    Evidence,
    NodesWhere,
    PodsWhere,
    Tally,
    Term,
    TermKind,
    WhatIf,
)
from mooring.framework.events import Action, ClusterEvent, Hint
from mooring.framework.gates import FeatureGates
from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.normalizers import Normalizer, ToMax
from mooring.framework.plugin import Plugin, QueuedPod, Reads
from mooring.framework.points import Point
from mooring.framework.services import (
    Background,
    Binder,
    Http,
    HttpAnswer,
    Objects,
    Pods,
    Published,
    Queue,
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
    Code,
    IntArray,
    OnlyNodes,
    Plan,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    Wait,
)
from mooring.objects import CustomResource, Node, Pod, ResourcePart
from mooring.objects.placed import PlacedPod

__all__ = [
    "ALL_NODES",
    "PENDING",
    "UNRESOLVABLE",
    "UNSCHEDULABLE",
    "Action",
    "Allow",
    "Args",
    "ArgsPart",
    "Background",
    "Binder",
    "BoolArray",
    "Bound",
    "Clock",
    "ClusterEvent",
    "Code",
    "CustomResource",
    "Cycle",
    "Evidence",
    "FeatureGates",
    "Hint",
    "Http",
    "HttpAnswer",
    "IntArray",
    "Log",
    "Meta",
    "Node",
    "NodeRows",
    "NodeView",
    "NodesWhere",
    "Normalizer",
    "Objects",
    "OnlyNodes",
    "PlacedPod",
    "Plan",
    "Plugin",
    "Pod",
    "Pods",
    "PodsWhere",
    "Point",
    "Published",
    "Queue",
    "QueuedPod",
    "Reads",
    "Refusal",
    "Rejection",
    "Rejections",
    "ResourcePart",
    "Skip",
    "Tally",
    "Term",
    "TermKind",
    "ToMax",
    "Wait",
    "WaitingPod",
    "WaitingPods",
    "WhatIf",
]
