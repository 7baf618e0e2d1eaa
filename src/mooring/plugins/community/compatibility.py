"""Whose behaviour a community plugin has where the original is wrong."""

from __future__ import annotations

from typing import Annotated, Literal

from mooring.framework import Meta

Compatibility = Annotated[
    Literal["mooring", "scheduler-plugins"],
    Meta(description="scheduler-plugins: also behave as the original where that is wrong; see the plugin's page."),
]
