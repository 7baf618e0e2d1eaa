"""A plugin: a class whose methods are extension points.

What each method means, who calls it and what its results cause stands in `mooring.framework.points`. A plugin has
the methods it needs and no others; the constructor takes services by their type (`mooring.framework.services`).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from mooring.framework.api_version import API_VERSION
from mooring.framework.events import Hint
from mooring.framework.normalizers import Normalizer

if TYPE_CHECKING:
    from mooring.framework.points import ExtensionPoints
else:
    ExtensionPoints = object


class Reads(Enum):
    """What a plugin's results depend on, beyond the pod and its own state.

    A narrower value lets the engine cache; a wrong one gives stale decisions. `ANYTHING` is always right.
    """

    NODE = "the node object alone"
    REQUESTED = "the node, and what the pods on it request and hold in sum: resources and host ports"
    PODS = "the node and the pods on it"
    DOMAIN = "the tallies at the node's topology domain"
    ANYTHING = "anything: runs every time"


class Plugin(ExtensionPoints):
    """Base of every plugin. Class attributes declare how the engine may treat it.

    Editors and type checkers see the methods of every extension point here. At run time there are none of them: a
    plugin has the points whose methods it defines, and there is no `super().filter(…)` to call.
    """

    name: ClassVar[str]
    """Its name in configurations and messages; by default the class name. Its arguments are `<name>Args`."""
    requires_api: ClassVar[tuple[int, int]] = (API_VERSION[0], 0)
    """The oldest version of the plugin API that has what it uses; see docs/plugin-api.md."""
    reads: ClassVar[Reads] = Reads.ANYTHING
    normalizer: ClassVar[Normalizer | None] = None
    """How raw scores become 0…100; None: they are already, or the plugin has a `normalize` method."""
    pre_filter_reads_pods: ClassVar[bool] = True
    """Whether the result of `pre_filter` depends on the pods on nodes. False: it does not run again in the what-ifs of
    preemption and of nominated pods."""
    per_template: ClassVar[bool] = False
    """Whether `sign`, `pre_filter` and `pre_score` read nothing but the pod's namespace, labels, spec and reported
    resources. Then, if it signs the pod, they run once for all pods that are alike in these and share the state."""
    reads_requests: ClassVar[bool] = True
    """Whether `sign`, `pre_filter` or `pre_score` read what containers request, or their limits. False, together with
    `per_template`: they run once for all pods that differ in nothing else."""
    missing_state_message: ClassVar[str] = 'reading "{}" from cycleState: not found'
    """The message of the fault when `filter` reads the state of a `pre_filter` that did not run."""
    score_needs_pre_score: ClassVar[bool] = True
    """Whether `score` fails when this plugin's `pre_score` is switched off (only meaningful if it has both)."""
    pre_bind_in_parallel: ClassVar[bool] = False
    """Whether its `pre_bind` may run together with those of its neighbours in the profile that declare it too."""
    preempts: ClassVar[bool] = False
    """Whether its `post_filter` preempts pods: calls count as `scheduler_preemption_attempts_total`."""
    binds_volumes: ClassVar[bool] = False
    """Whether it binds volumes: its faults count as `scheduler_volume_scheduling_stage_error_total`."""
    pod_fields: ClassVar[tuple[str, ...]] = ()
    """The fields of a pod that the plugin evaluates, as in a manifest (`spec.containers[*].ports`). When an attempt
    exceeds its time budget in this plugin, the largest of them is reported."""
    longest_wait_seconds: float = 900.0
    """How long `unreserve`, `pre_bind`, `bind` or `post_bind` may take for one pod. After that it is cancelled and has
    failed; `math.inf` where the plugin bounds its waiting itself. An instance may set its own."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def events(self) -> Iterable[Hint] | None:
        """Which cluster events may make a pod schedulable that this plugin refused.

        Called once, when the plugin is built. None (the default) means any: the pod is tried again at every change
        of pods, nodes, volumes or claims. An empty list means none: only the five-minute flush helps.
        """
        return None
