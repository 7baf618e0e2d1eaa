"""What several commands share: verbosity, the registry of plugins, loading a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.base import log
from mooring.base.errors import OperatorMistake
from mooring.base.missing_files import why_absent
from mooring.cli.gotypes import Flag

if TYPE_CHECKING:
    from mooring.config import Configuration, Loaded
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import PluginEntry, Registry

F = TypeVar("F", bound=Callable[..., Any])

_log = log.Log("mooring")


def verbosity_option(command: F) -> F:
    """`-v N`, as kube-scheduler's; and the form of the log."""

    def set_verbosity(_: click.Context, __: click.Parameter, value: int) -> int:
        log.configure(verbosity=value)
        return value

    def set_format(_: click.Context, __: click.Parameter, value: str) -> str:
        log.configure(format="json" if value == "json" else "text")
        return value

    command = click.option(
        "--logging-format",
        cls=Flag,
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        expose_value=False,
        callback=set_format,
        help="How log lines are written.",
    )(command)
    return click.option(
        "-v",
        "--v",
        cls=Flag,
        metavar="N",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        expose_value=False,
        callback=set_verbosity,
        help="Log verbosity, with kube-scheduler's levels (2: what was bound; 6: why).",
    )(command)


def plugins_option(command: F) -> F:
    return click.option(
        "--plugins",
        multiple=True,
        metavar="PATH",
        help="A plugin file, a folder of them, or module:Class. May be given several times.",
    )(command)


def gates_option(command: F) -> F:
    """`--feature-gates`, read: the command gets `gates`. What the operator should know about them goes to the log."""

    def read(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> FeatureGates:
        from mooring.framework.gates import read_gates

        parsed = read_gates(values)
        for warning in parsed.warnings:
            _log.warning(warning.message, flag=warning.path)
        return parsed.gates

    return click.option(
        "--feature-gates",
        "gates",
        multiple=True,
        metavar="NAME=BOOL,…",
        callback=read,
        help="Features to switch on or off, with kube-scheduler's names and defaults. May be given several times.",
    )(command)


def registry_with(plugins: Sequence[str]) -> Registry:
    """Every plugin that can be configured: built in, installed, and named on the command line."""
    from mooring.plugins.catalogue import catalogue

    registry = catalogue()
    registry.add_entry_points()
    for path in plugins:
        registry.add_path(path)
    return registry


def plugin_named(name: str, plugins: Sequence[str] | None = None) -> PluginEntry:
    """One of those plugins, or an explanation. `plugins`: the values of `--plugins`, if the command has it."""
    registry = registry_with(plugins or ())
    entry = registry.get(name)
    if entry is None:
        close = registry.closest(name)
        guess = f' Did you mean "{close}"?' if close else ""
        listed = "" if close else " `mooring plugin list` shows all."
        raise OperatorMistake(f'there is no plugin "{name}".{guess}{_files_read(plugins)}{listed}')
    return entry


def _files_read(plugins: Sequence[str] | None) -> str:
    """Which plugin files the operator named, for one who looks for a plugin of theirs."""
    if plugins is None:
        return ""
    if not plugins:
        return " No plugin file was read: name the one that has it by --plugins PATH."
    return f" Besides those built in and installed, the plugins of {', '.join(plugins)} were read."


def read_text(path: str) -> str:
    """A file the operator named, or an explanation."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be read: {error.strerror}.{why_absent(path)}") from error
    except UnicodeDecodeError as error:
        raise OperatorMistake(f"{path} is not a text file: {error.reason} at byte {error.start}.") from error


def load(path: str | None, registry: Registry, gates: FeatureGates | None = None) -> Configuration:
    """The configuration in the file, or the default one; its warnings go to the log."""
    from mooring.config import default_configuration, load_configuration

    if path is None:
        return default_configuration(registry, gates)
    loaded: Loaded = load_configuration(read_text(path), source=path, registry=registry, gates=gates)
    for warning in loaded.warnings:
        _log.warning(warning.message, file=path, field=warning.path, **({"line": warning.line} if warning.line else {}))
    return loaded.configuration
