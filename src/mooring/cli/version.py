"""`mooring version`."""

from __future__ import annotations

import platform

import click

from mooring import __version__
from mooring.cli.output import print_line

REFERENCE = "v1.36"


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
