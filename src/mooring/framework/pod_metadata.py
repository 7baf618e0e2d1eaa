"""Annotations and labels that plugins write to pods: what they may be, and what one attempt adds to a pod's binding.

kube-apiserver copies those of a binding to the pod without looking at them, and a pod with a malformed key cannot be
updated any more. So they are checked here, by its rules for pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.base.errors import Fault
from mooring.objects.names import label_value, qualified_name

MOST_ANNOTATION_BYTES = 256 * 1024
"""What all annotations of an object may have together."""

NOTHING: Mapping[str, str] = {}


def check_metadata(annotations: Mapping[str, str | None], labels: Mapping[str, str | None]) -> None:
    """Raise a `Fault` that names every key and value that a pod cannot have. None stands for a removed one."""
    if problems := [*_problems("annotation", annotations), *_problems("label", labels)]:
        raise Fault("; ".join(problems))


def check_size(annotations: Mapping[str, str]) -> None:
    """Raise a `Fault` if these are more than a pod can have."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MOST_ANNOTATION_BYTES:
        raise Fault(f"the pod would have {size} bytes of annotations; {MOST_ANNOTATION_BYTES} are allowed")


def _problems(what: str, pairs: Mapping[str, str | None]) -> Iterator[str]:
    for key, value in pairs.items():
        if not isinstance(key, str) or not isinstance(value, str | None):
            yield f"{what} {key!r}: {value!r} must be text"
            continue
        # Annotations may be written in capitals, labels may not; each in kube-apiserver's words.
        for sentence in qualified_name(key.lower() if what == "annotation" else key):
            yield f'{what} "{key}": {sentence}'
        if what == "label" and value is not None:
            for sentence in label_value(value):
                yield f'label "{key}": "{value}": {sentence}'


class BindingMetadata:
    """What the plugins of one attempt add to the binding of its pod."""

    __slots__ = ("_added_by", "annotations", "is_sent", "labels")

    def __init__(self) -> None:
        self.annotations: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.is_sent = False
        """Whether a binding with them has been sent."""
        self._added_by: dict[tuple[str, str], str] = {}

    @property
    def plugins(self) -> list[str]:
        """Those that added something."""
        return sorted(set(self._added_by.values()))

    def add(self, plugin: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Add all of them, or none and raise a `Fault`: also if another plugin has given a key another value."""
        check_metadata(annotations, labels)
        pairs = (("annotation", self.annotations, annotations), ("label", self.labels, labels))
        for what, known, added in pairs:
            for key, value in added.items():
                other = self._added_by.get((what, key), plugin)
                if other != plugin and known[key] != value:
                    raise Fault(f'{what} "{key}": plugin {other} has set it to "{known[key]}", {plugin} to "{value}"')
        for what, known, added in pairs:
            known.update(added)
            self._added_by.update({(what, key): plugin for key in added})
