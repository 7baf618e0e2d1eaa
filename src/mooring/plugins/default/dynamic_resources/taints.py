"""Device taints: a device with a taint that the request does not tolerate is left alone."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.objects.resource import Device, DeviceTaint, DeviceToleration

PREVENTING = ("NoSchedule", "NoExecute")
"""Other effects are ignored."""


def is_repelled(device: Device, tolerations: Sequence[DeviceToleration]) -> bool:
    return any(
        taint.effect in PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in device.taints
    )


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """No effect means any, no key any; without operator the values must be equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
