"""The pages that a running scheduler serves besides its health: metrics, configuration, status and flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mooring import __version__

if TYPE_CHECKING:
    from mooring.scheduler import Scheduler
    from mooring.scheduler.election.leadership import Leadership
    from mooring.scheduler.serving import Pages
    from mooring.scheduler.serving.metric_filter import MetricFilter

EMULATED = "1.36"
LISTED = ("/configz", "/healthz", "/livez", "/metrics", "/readyz")
"""What /statusz names, as kube-scheduler's does; and /flagz, where there is a command line to show."""


def served_pages(
    scheduler: Scheduler, leader: Leadership | None, metric_filter: MetricFilter, command_line: Mapping[str, str]
) -> Pages:
    """To be called before the scheduler runs: who serves what pods request must see every pod."""
    import msgspec

    from mooring.base.clock import SystemClock
    from mooring.config.as_v1 import as_v1
    from mooring.scheduler.metrics.scheduler_metrics import CONTENT_TYPE
    from mooring.scheduler.serving import Page, flagz, statusz

    def configz() -> bytes:
        return msgspec.json.encode({"componentconfig": as_v1(scheduler.configuration)})

    def leads() -> bool:
        return leader is None or leader.leading.is_set()

    filtered = metric_filter.filtered
    flags = {"/flagz": flagz(command_line)} if command_line else {}
    return {
        "/metrics": Page(CONTENT_TYPE, filtered(scheduler.metrics.text)),
        "/metrics/resources": Page(CONTENT_TYPE, filtered(scheduler.pod_resources.served(leads))),
        "/metrics/slis": Page(CONTENT_TYPE, filtered(scheduler.metrics.health.text)),
        "/configz": Page("application/json", configz),
        "/statusz": statusz(SystemClock(), __version__, EMULATED, [*LISTED, *flags]),
        **flags,
    }
