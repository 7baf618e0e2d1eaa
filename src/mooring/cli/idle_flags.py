"""kube-scheduler's flags that have nothing to act on here: checked, shown in /flagz, and warned about once if given.

A value that equals the fixed behaviour causes no warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec

from mooring.base import log
from mooring.cli.gotypes import Flag, GoBool, GoDuration, GoList

F = TypeVar("F", bound=Callable[..., Any])

REFERENCE = "1.36"
PREVIOUS = "1.35"
EMULATED = ("1.33", "1.34", "1.35", "1.36")
_VMODULE = re.compile(r"[^=,]+=\d+(,[^=,]+=\d+)*,?")
_SIZE = re.compile(r"\d+(\.\d+)?(k|K|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")

_log = log.Log("mooring")


class Idle(msgspec.Struct, frozen=True):
    """A flag without effect: how it is read, what it would be without being given, and why it does nothing."""

    kind: click.ParamType[Any]
    default: Any
    why: str
    has_effect: Callable[[Any], bool] = bool
    """Whether the value would have an effect in kube-scheduler."""
    wrong: Callable[[Any], str | None] = lambda _: None
    """What is wrong with the value."""


def _wrong_vmodule(value: str) -> str | None:
    is_good = not value or _VMODULE.fullmatch(value)
    return None if is_good else f'must be pattern=N, with commas between several; got "{value}"'


def _wrong_size(value: str) -> str | None:
    return None if _SIZE.fullmatch(value) else f'must be a size such as 512, 1k or 2Ki; got "{value}"'


def _wrong_streams(value: int) -> str | None:
    return None if value >= 0 else f"must not be negative, got {value}"


def _wrong_emulation(values: tuple[str, ...]) -> str | None:
    for value in values:
        component, equals, version = value.rpartition("=")
        if equals and component != "kube":
            return f'there is no component "{component}"; the only one is kube'
        if version.removeprefix("v") not in EMULATED:
            return f'must be between {EMULATED[0]} and {EMULATED[-1]}, got "{version}"'
    return None


def _is_other_version(values: tuple[str, ...]) -> bool:
    return any(value.rpartition("=")[2].removeprefix("v") != REFERENCE for value in values)


def _wrong_hidden(value: str) -> str | None:
    return None if value in ("", PREVIOUS) else f'must be left out or be "{PREVIOUS}", got "{value}"'


_LINES = "every log line is written at once"
IDLE: Mapping[str, Idle] = {
    "--disable-http2-serving": Idle(GoBool(), False, "", lambda _: False),
    "--http2-max-streams-per-connection": Idle(click.INT, 0, "HTTP/2 is not served", wrong=_wrong_streams),
    # Listening sockets have SO_REUSEADDR in any case, as Go's have.
    "--permit-address-sharing": Idle(GoBool(), False, "", lambda _: False),
    "--emulated-version": Idle(
        GoList(),
        (),
        f"Mooring behaves as {REFERENCE}; features can be switched with --feature-gates",
        _is_other_version,
        _wrong_emulation,
    ),
    "--min-compatibility-version": Idle(
        GoList(), (), "nothing here depends on it", _is_other_version, _wrong_emulation
    ),
    "--show-hidden-metrics-for-version": Idle(click.STRING, "", "no metric is hidden", wrong=_wrong_hidden),
    "--vmodule": Idle(click.STRING, "", "verbosity is the same for every part: use --v", wrong=_wrong_vmodule),
    "--log-flush-frequency": Idle(GoDuration(), "5s", _LINES, lambda seconds: seconds != 5),
    "--log-text-info-buffer-size": Idle(click.STRING, "0", _LINES, lambda size: size != "0", _wrong_size),
    "--log-json-info-buffer-size": Idle(click.STRING, "0", _LINES, lambda size: size != "0", _wrong_size),
}


def idle_options(command: F) -> F:
    """The flags; the command does not get them."""
    for name, idle in reversed(list(IDLE.items())):
        command = click.option(
            name,
            cls=Flag,
            type=idle.kind,
            default=idle.default,
            hidden=True,
            expose_value=False,
            callback=_checked(name, idle),
        )(command)
    return command


def _checked(name: str, idle: Idle) -> Callable[[click.Context, click.Parameter, Any], None]:
    def check(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if wrong := idle.wrong(value):
            raise click.BadParameter(wrong, ctx, parameter)
        if idle.has_effect(value):
            _log.warning(f"has no meaning here: {idle.why}", flag=name)

    return check
