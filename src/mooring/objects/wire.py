"""How structs are encoded: snake_case in Python, camelCase in JSON, unknown fields ignored, defaults left out."""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, gc=False):
    """A part of a Kubernetes object. Instances are shared; treat them as values."""
