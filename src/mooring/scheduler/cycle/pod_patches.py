"""Patches of pods that are safe to send twice: transient errors are retried a few times, with backoff."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mooring.base import retry
from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.client import ApiClient
from mooring.objects.core import Pod

TRIES = 4
BACKOFF = retry.Backoff(initial_seconds=0.01, limit_seconds=1.0, factor=5.0)
CONFLICT = 409
RETRIED_AS_IT_IS = (500, 503)
RETRIED = (CONFLICT, *RETRIED_AS_IT_IS)


async def patch_status(
    client: ApiClient,
    clock: Clock,
    namespace: str,
    name: str,
    body: dict[str, Any],
    *,
    retried: Collection[int] = RETRIED,
) -> None:
    """Patch a pod's status."""
    await patch_pod(client, clock, namespace, name, body, subresource="status", retried=retried)


async def patch_pod(
    client: ApiClient,
    clock: Clock,
    namespace: str,
    name: str,
    body: dict[str, Any],
    *,
    subresource: str | None = None,
    retried: Collection[int] = RETRIED,
) -> dict[str, Any]:
    """Patch a pod; the pod as the API server has it now."""
    return await retry.retried(
        lambda: client.patch(Pod.KIND, name, namespace, body, subresource=subresource),
        BACKOFF,
        clock,
        tries=TRIES,
        is_retryable=lambda error: not is_gone(error) and may_pass(error, retried),
    )


def is_gone(error: Exception) -> bool:
    """Whether the pod with this uid is deleted; another may have its name."""
    if not isinstance(error, ApiError):
        return False
    # kube-apiserver calls another uid in a patch an invalid change, in a deletion a conflict.
    is_other = error.code in (409, 422) and ("UID in precondition" in error.message or "metadata.uid" in error.message)
    return error.code == 404 or is_other


def may_pass(error: Exception, retried: Collection[int]) -> bool:
    return error.code in retried if isinstance(error, ApiError) else isinstance(error, Fault)
