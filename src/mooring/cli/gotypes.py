"""Values as kube-scheduler's flags take them and as its /flagz shows them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from mooring.base.durations import duration_seconds, go_duration

F = TypeVar("F", bound=Callable[..., Any])


class GoBool(click.ParamType[bool]):
    """true or false, as Go's strconv.ParseBool reads it."""

    name = "bool"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if value in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        return self.fail(f'must be true or false, got "{value}"', param, ctx)


class GoDuration(click.ParamType[float]):
    """A duration as Go writes it: `5m0s`, `90s`, `1h30m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        seconds = duration_seconds(str(value))
        if seconds is None:
            self.fail(f'must be a duration such as "5m" or "90s", got "{value}"', param, ctx)
        return seconds


class GoList(click.ParamType[tuple[str, ...]]):
    """Values with commas between them; a flag that is given several times adds to its list."""

    name = "list"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, str):
            rows = list(csv.reader([value])) if value else []
            return tuple(rows[0]) if rows else ()
        assert isinstance(value, Sequence)
        return tuple(value)


def shown(value: object) -> str:
    """A flag's value as Go prints it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            return f"[{','.join(map(str, value))}]"
        case float() if value == int(value):
            return str(int(value))
        case _:
            return str(value)


class Flag(click.Option):
    """An option of kube-scheduler's.

    A list may be given several times. `unset` is what /flagz shows where the flag was not given and nothing stands for
    it here (the configuration file decides).
    """

    def __init__(self, *args: Any, unset: str = "", **kwargs: Any) -> None:
        self.unset = unset
        if isinstance(kwargs.get("type"), GoList):
            kwargs["multiple"] = True
            kwargs["default"] = [kwargs.get("default") or ()]
            kwargs["callback"] = _joined(kwargs.get("callback"))
        super().__init__(*args, **kwargs)

    def text(self, given: Sequence[str]) -> str:
        """What /flagz shows."""
        if isinstance(self.type, GoList):
            values = [self.type.convert(each, self, None) for each in given or self._defaults]
            return shown([item for value in values for item in value])
        if self.multiple:
            return shown(list(given))
        if not given:
            default = self.default
            if not isinstance(default, str | bool | int | float):
                return self.unset
            return go_duration(self.type.convert(default, self, None)) if self._is_duration else shown(default)
        value = self.type.convert(given[-1], self, None)
        return go_duration(value) if self._is_duration else shown(value)

    @property
    def _defaults(self) -> Sequence[object]:
        return self.default if isinstance(self.default, list) else ()

    @property
    def _is_duration(self) -> bool:
        return isinstance(self.type, GoDuration)


def _joined(then: Callable[[click.Context, click.Parameter, Any], Any] | None) -> Callable[..., Any]:
    def join(ctx: click.Context, parameter: click.Parameter, values: Sequence[Sequence[str]]) -> Any:
        joined = tuple(item for value in values for item in value)
        return joined if then is None else then(ctx, parameter, joined)

    return join


Row = tuple[click.ParamType[Any], Any, str, str]
"""type, default, metavar, help"""


def flags(rows: Mapping[str, Row], **options: Any) -> Callable[[F], F]:
    """A decorator that adds these options to a command, in this order."""

    def add(command: F) -> F:
        for name, (kind, default, metavar, help_text) in reversed(list(rows.items())):
            command = click.option(
                name, cls=Flag, type=kind, default=default, metavar=metavar, help=help_text, **options
            )(command)
        return command

    return add
