"""The arguments of DynamicResources."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

from mooring.framework import Args, Meta


class DynamicResourcesArgs(Args):
    """Arguments of DynamicResources."""

    filter_timeout: Annotated[
        timedelta, Meta(description="How long the search for devices may take on one node; 0 means without end.")
    ] = timedelta(seconds=10)
    binding_timeout: Annotated[
        timedelta, Meta(description="How long allocated devices may take until their binding conditions are met.")
    ] = timedelta(seconds=600)

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.filter_timeout < timedelta(0):
            yield "filterTimeout", "must be zero or positive"
        if self.binding_timeout < timedelta(seconds=1):
            yield "bindingTimeout", "must be at least 1 second"
