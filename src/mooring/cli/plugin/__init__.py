"""`mooring plugin …`: list, show, create and test plugins."""

from __future__ import annotations

import click

from mooring.cli.command_group import CommandGroup
from mooring.cli.common import plugin_named, plugins_option, registry_with
from mooring.cli.output import print_line, print_lines


@click.group(cls=CommandGroup)
def plugin() -> None:
    """List, show, create or test plugins.

    \b
    Example:
      mooring plugin new Headroom
      mooring plugin test headroom/
    """


@plugin.command(name="list", short_help="List every plugin that can be configured.")
@plugins_option
def list_plugins(plugins: tuple[str, ...]) -> None:
    """List every plugin that can be configured: name, extension points, where from.

    \b
    Example:
      mooring plugin list --plugins my_plugin.py
    """
    rows = [
        (entry.name, ", ".join(point.config_name for point in entry.points), entry.source)
        for entry in registry_with(plugins)
    ]
    heads = ("NAME", "EXTENSION POINTS", "FROM")
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(2)]
    for name, points, source in [heads, *rows]:
        print_line(f"{name:<{widths[0]}}  {points:<{widths[1]}}  {source}")


@plugin.command(short_help="Show a plugin's documentation and arguments.")
@click.argument("name")
@plugins_option
def show(name: str, plugins: tuple[str, ...]) -> None:
    """Show a plugin's documentation, and its arguments with their defaults.

    \b
    Example:
      mooring plugin show NodeResourcesFit
    """
    from mooring.cli.plugin.reference import reference

    print_lines(reference(plugin_named(name, plugins)))


@plugin.command(short_help="Write a plugin, its test and a configuration.")
@click.argument("name")
@click.option(
    "--into", default=None, metavar="FOLDER", help="Where to write.  [default: a folder named like the plugin]"
)
def new(name: str, into: str | None) -> None:
    """Write a plugin that works, its test, and a configuration that uses it.

    \b
    Example:
      mooring plugin new Headroom
    """
    from mooring.cli.plugin.scaffold import write_scaffold

    print_lines(write_scaffold(name, into))


@plugin.command(name="test", short_help="Check a plugin's contract and run its tests.")
@click.argument("path")
def test_plugin(path: str) -> int:
    """Import the plugin at PATH, check that it keeps the contract, and run its tests.

    \b
    Example:
      mooring plugin test headroom/
    """
    from mooring.cli.plugin.trial import try_out

    return try_out(path)
