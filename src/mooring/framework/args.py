"""A plugin's arguments: one class, from which loading, defaults, checking and reference docs come.

    class HeadroomArgs(Args):
        resource: str = "cpu"
        keep_percent: Annotated[int, Meta(ge=0, le=100, description="Share to leave free.")] = 10

In a configuration file the names are camelCase (`keepPercent`). `Meta` is msgspec's; its `description` is the
field's help (a docstring below the field would be lost at run time).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, dataclass_transform

import msgspec

Meta = msgspec.Meta


class _ArgsMeta(msgspec.StructMeta):
    """msgspec does not hand these options on to subclasses, and an author should not have to repeat them."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **({"kw_only": True, "frozen": True} | options))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class ArgsPart(msgspec.Struct, metaclass=_ArgsMeta, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Base of a structure inside arguments: `scoringStrategy: {type: …, resources: […]}`."""


class Args(ArgsPart):
    """Base of every `<Name>Args`. Fields without a default are required."""

    def mistakes(self) -> Iterable[tuple[str, str]]:
        """What types cannot express: (field path, what would be right) for each. Called when the file is loaded.

        yield "scoring.weights[0]", "must be more than 0"
        """
        return ()

    def unused_services(self) -> Iterable[type]:
        """Services that the plugin takes, and never calls with these arguments: no rights are requested for them."""
        return ()


def checked_mistakes(args: Args) -> Iterator[tuple[str, str]]:
    """What `mistakes` yields. Raises `TypeError` where that is anything but pairs of texts."""
    for mistake in args.mistakes():
        match mistake:
            case (str(), str()):
                yield mistake
            case _:
                raise TypeError(f"it must yield (field path, message), not {mistake!r}")
