"""How structs are encoded: snake_case in Python, camelCase in JSON, unknown fields ignored, defaults left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec

from mooring.objects.read_only import refuse_attribute


class ReadOnlyMeta(msgspec.StructMeta):
    """`frozen` is for type checkers: with msgspec's own, a write fails with "immutable type" and no word of what to do,
    and nothing can be computed once."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        options.pop("frozen", None)
        return super().__new__(mcls, name, bases, namespace, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Wire(
    msgspec.Struct, metaclass=ReadOnlyMeta, rename="camel", kw_only=True, omit_defaults=True, gc=False, frozen=True
):
    """A part of a Kubernetes object. Instances are shared and read-only."""

    if not TYPE_CHECKING:
        __setattr__ = __delattr__ = refuse_attribute
