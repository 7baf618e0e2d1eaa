"""`mooring config …`: check, convert and show a KubeSchedulerConfiguration without running anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mooring.base.errors import Problem
from mooring.cli.command_group import CommandGroup
from mooring.cli.common import gates_option, plugins_option, read_text, registry_with
from mooring.cli.output import print_line, print_yaml

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates


@click.group(cls=CommandGroup)
def config() -> None:
    """Check, convert or show a KubeSchedulerConfiguration (v1, v1beta3, v1beta2 or v1beta1).

    \b
    Example:
      mooring config check scheduler.yaml --plugins my_plugin.py
    """


@config.command()
@click.argument("file")
@plugins_option
@gates_option
def check(file: str, plugins: tuple[str, ...], gates: FeatureGates) -> None:
    """Report everything that is wrong with FILE, with line and field.

    \b
    Example:
      mooring config check scheduler.yaml
    """
    from mooring.config import load_configuration

    loaded = load_configuration(read_text(file), source=file, registry=registry_with(plugins), gates=gates)
    _warn(loaded.warnings)
    profiles = [profile.scheduler_name for profile in loaded.configuration.profiles]
    noted = f", with {len(loaded.warnings)} warning{'s' * (len(loaded.warnings) > 1)}" if loaded.warnings else ""
    print_line(f"{file} is a good {loaded.version} configuration{noted}. Profiles: {', '.join(profiles)}")


@config.command(short_help="Print FILE as v1, with warnings.")
@click.argument("file")
@plugins_option
@gates_option
def convert(file: str, plugins: tuple[str, ...], gates: FeatureGates) -> None:
    """Print FILE as v1; what cannot be kept as it was is warned about, or refused.

    \b
    Example:
      mooring config convert old.yaml > scheduler.yaml
    """
    from mooring.config import convert as converted

    result = converted(read_text(file), source=file, registry=registry_with(plugins), gates=gates)
    _warn(result.warnings)
    print_yaml(result.text)


@config.command(short_help="List the plugins of each extension point with their arguments.")
@click.argument("file")
@plugins_option
@gates_option
def show(file: str, plugins: tuple[str, ...], gates: FeatureGates) -> None:
    """Show which plugin runs at which point, in which order, with which weight and arguments.

    \b
    Example:
      mooring config show scheduler.yaml
    """
    from mooring.config import load_configuration
    from mooring.config.as_v1 import args_as_json
    from mooring.framework.points import Point

    loaded = load_configuration(read_text(file), source=file, registry=registry_with(plugins), gates=gates)
    _warn(loaded.warnings)
    for number, profile in enumerate(loaded.configuration.profiles):
        if number:
            print_line()
        print_line(f"Profile {profile.scheduler_name}")
        for point, uses in profile.points.items():
            is_weighted = point in (Point.SCORE, Point.PLACEMENT_SCORE)
            names = [f"{use.name} x{use.weight}" if is_weighted else use.name for use in uses]
            print_line(f"  {point.config_name:<11} {', '.join(names) or '-'}")
        if profile.args:
            print_line("  Arguments")
        for name, args in profile.args.items():
            print_line(f"    {name:<25} ", json=args_as_json(args).decode())


def _warn(warnings: tuple[Problem, ...]) -> None:
    for warning in warnings:
        where = f"{warning.path} (line {warning.line})" if warning.line is not None else warning.path
        print_line(f"Warning: {where}: {warning.message}", err=True)
