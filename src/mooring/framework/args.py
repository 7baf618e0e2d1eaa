"""A plugin's arguments: one class, from which loading, defaults, checking and reference docs come.

    class HeadroomArgs(Args):
        resource: str = "cpu"
        keep_percent: Annotated[int, Meta(ge=0, le=100, description="Share to leave free.")] = 10

In a configuration file the names are camelCase (`keepPercent`). `Meta` is msgspec's; its `description` is the
field's help (a docstring below the field would be lost at run time).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

Meta = msgspec.Meta


class Args(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True, frozen=True):
    """Base of every `<Name>Args`. Fields without a default are required."""

    def mistakes(self) -> Iterable[tuple[str, str]]:
        """What types cannot say: (field path, what would be right) for each mistake. Called when the file is loaded."""
        return ()
