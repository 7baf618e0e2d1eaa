"""Server-side printing: `meta.k8s.io/v1` Table and PartialObjectMetadata."""

from __future__ import annotations

from mooring.apiserver.tables.rendering import Tables

__all__ = ["Tables"]
