"""How structs are encoded: snake_case in Python, camelCase in JSON, unknown fields ignored, defaults left out."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Wire(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, gc=False, frozen=True):
    """A part of a Kubernetes object. Instances are shared and read-only."""
