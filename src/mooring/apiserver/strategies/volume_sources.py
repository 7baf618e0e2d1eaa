"""Defaults of volume sources, which volumes of pods and PersistentVolumes share."""

from __future__ import annotations

from mooring.apiserver.documents import Document
from mooring.apiserver.strategies.base import set_default, set_text

_TEXTS: dict[str, dict[str, str]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_VALUES: dict[str, dict[str, str | bool]] = {
    "hostPath": {"type": ""},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
}


def default_source(volume: Document) -> None:
    """Default the source that is among the fields of `volume`."""
    for name, texts in _TEXTS.items():
        if isinstance(source := volume.get(name), dict):
            for field, text in texts.items():
                set_text(source, field, text)
    for name, values in _VALUES.items():
        if isinstance(source := volume.get(name), dict):
            for field, value in values.items():
                set_default(source, field, value)
