"""`mooring version`."""

from __future__ import annotations

import platform

import click

from mooring import __version__

REFERENCE = "v1.36"


@click.command()
def version() -> None:
    """Print Mooring's version, and the kube-scheduler whose behaviour it follows."""
    click.echo(f"mooring {__version__}")
    click.echo(f"behaves as kube-scheduler {REFERENCE}, Python {platform.python_version()}")
