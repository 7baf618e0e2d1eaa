"""`mooring version`, and kube-scheduler's flags `--version`, `--version=raw` and `--version=vX.Y.Z`."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mooring import __version__
from mooring.base.log import Log
from mooring.cli.gotypes import Flag, GoBool
from mooring.cli.output import print_line

REFERENCE = "v1.36"

F = TypeVar("F", bound=Callable[..., Any])

_log = Log("mooring")


@click.command()
def version() -> None:
    """Print Mooring's version, the kube-scheduler whose behaviour it follows, and the version of the plugin API.

    \b
    Example:
      mooring version
    """
    from mooring.framework.api_version import API_VERSION, shown

    print_line(f"mooring {__version__}")
    print_line(f"behaves as kube-scheduler {REFERENCE}, Python {platform.python_version()}")
    print_line(f"plugin API {shown(API_VERSION)}")


class GoVersion(click.ParamType[str]):
    """true, false, raw, or a version."""

    name = "version"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text == "raw" or text.startswith("v"):
            return text
        return "true" if GoBool().convert(text, param, ctx) else "false"


def version_option(command: F) -> F:
    return click.option(
        "--version",
        cls=Flag,
        type=GoVersion(),
        default="false",
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        metavar="[raw]",
        help="Print the version and end; `raw` prints all fields.",
    )(command)


def _print_version(ctx: click.Context, _: click.Parameter, value: str) -> None:
    if value == "false" or ctx.resilient_parsing:
        return
    if value.startswith("v"):
        _log.warning("has no meaning here: Mooring reports its own version", flag=f"--version={value}")
        return
    if value == "raw":
        print_line(
            f'mooring {__version__} kube-scheduler="{REFERENCE}" python="{platform.python_version()}" '
            f'platform="{sys.platform}/{platform.machine()}"'
        )
    else:
        print_line(f"Mooring {__version__} (kube-scheduler {REFERENCE})")
    ctx.exit()
