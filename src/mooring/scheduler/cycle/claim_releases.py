"""Claims that stand in a pod's way are given back, as a post_filter plugin proposed: beside the loop.

The pod waits meanwhile. That its claim changed is what wakes it; a claim that was deleted cannot.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.base.log import Log
from mooring.framework import Pod
from mooring.framework.verdicts import ClaimRelease
from mooring.queue import SchedulingQueue
from mooring.scheduler.cycle.background_tasks import BackgroundTasks
from mooring.scheduler.plugin_runtime.claim_writer import ApiClaimWriter

AFTER_FAILURE_SECONDS, AFTER_DELETION_SECONDS = 10.0, 1.0

_log = Log("scheduler")


class ClaimReleases:
    """Carries them out."""

    def __init__(self, writer: ApiClaimWriter, queue: SchedulingQueue) -> None:
        self._writer = writer
        self._queue = queue
        self._errands = BackgroundTasks()

    def begin(self, releases: Sequence[ClaimRelease], pod: Pod) -> None:
        self._errands.send(self._release_all(releases, pod), f"release claims for {pod.key}")

    async def finish(self, seconds: float) -> None:
        """At shutdown: let what has begun end."""
        await self._errands.finish(seconds)

    async def _release_all(self, releases: Sequence[ClaimRelease], pod: Pod) -> None:
        for release in releases:
            claim = f"{release.namespace}/{release.name}"
            what = "Deletion of ResourceClaim" if release.delete else "Deallocation of ResourceClaim"
            try:
                await self._writer.release(release)
                _log.v(5).info(what, pod=pod, resourceclaim=claim)
                if release.delete:
                    self._queue.retry_after(pod, AFTER_DELETION_SECONDS)
            except Exception as error:  # whatever it is, the pod must not wait for what does not happen
                _log.error(f"{what} failed", pod=pod, resourceclaim=claim, err=error)
                self._queue.retry_after(pod, AFTER_FAILURE_SECONDS)
