"""The flags for reloading changed files, and SIGHUP, which reloads them once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.log import Log
from mooring.cli import hangup
from mooring.cli.common import registry_with
from mooring.cli.gotypes import Flag, GoBool

if TYPE_CHECKING:
    from mooring.config import Configuration
    from mooring.framework.registry import Registry
    from mooring.scheduler import Scheduler

F = TypeVar("F", bound=Callable[..., Any])


def reload_options(*, by_signal: bool) -> Callable[[F], F]:
    """The flags; the command gets them among its `**flags`. `by_signal`: SIGHUP reloads, too."""
    watching = "Reload the configuration when its file changes; an invalid one changes nothing."
    rows = {
        "--watch-config": f"{watching} Without this, SIGHUP reloads it once." if by_signal else watching,
        "--reload-plugins": "When reloading, run plugin files again that have changed. "
        "Anyone who can edit them can run code as the scheduler.",
    }

    def added(command: F) -> F:
        for name, help_text in reversed(rows.items()):
            command = click.option(
                name,
                cls=Flag,
                type=GoBool(),
                default=False,
                is_flag=False,
                flag_value="true",
                metavar="BOOL",
                help=help_text,
            )(command)
        return command

    return added


class ReloadedFiles(NamedTuple):
    """What may change while the scheduler runs."""

    config_file: str | None
    plugins: Sequence[str]
    watches: bool = False
    reloads_plugins: bool = False
    by_signal: bool = True


def reload_flags(
    flags: dict[str, Any], config_file: str | None, plugins: Sequence[str], *, by_signal: bool = True
) -> ReloadedFiles:
    """Takes the flags out. Flags without anything to reload are refused."""
    files = ReloadedFiles(config_file, plugins, flags.pop("watch_config"), flags.pop("reload_plugins"), by_signal)
    if problems := reload_problems(files):
        raise OperatorMistake.found_in("the command line", problems)
    return files


def reload_problems(files: ReloadedFiles) -> list[Problem]:
    problems = []
    if files.reloads_plugins and not files.watches and not files.by_signal:
        problems.append(Problem("--reload-plugins", "needs --watch-config: without it nothing is reloaded"))
    if files.reloads_plugins and not files.plugins:
        problems.append(Problem("--reload-plugins", "there are no plugin files to reload; name them with --plugins"))
    if files.watches and files.config_file is None and not (files.reloads_plugins and files.plugins):
        problems.append(Problem("--watch-config", "there is no file to watch; name one with --config"))
    return problems


class ReloadSource(msgspec.Struct, frozen=True):
    """Where configuration and plugins came from at the start, and come from again."""

    files: ReloadedFiles
    registry: Registry
    """The plugins known at the start; they stay those unless their files are reloaded too."""
    configured: Callable[[Registry], Configuration]
    prepare: Callable[[Configuration, Registry], Awaitable[None]] | None = None
    """What a configuration needs of the cluster before it decides."""

    def read(self) -> tuple[Configuration, Registry]:
        registry = registry_with(self.files.plugins) if self.files.reloads_plugins else self.registry
        return self.configured(registry), registry


@contextlib.asynccontextmanager
async def reloading(scheduler: Scheduler, source: ReloadSource | None) -> AsyncIterator[None]:
    """While this is open, the scheduler adopts new versions of the source."""
    loop = asyncio.get_running_loop()
    if source is None:
        if hangup.is_held():
            hangup.listen(lambda: _call_soon(loop, _cannot_reload))
        yield
        hangup.unlisten()
        return
    from mooring.base.clock import SystemClock
    from mooring.scheduler.reload.reloader import Reloader
    from mooring.scheduler.reload.watched_files import WatchedFiles

    files = WatchedFiles(source.files.config_file, source.files.plugins if source.files.reloads_plugins else ())
    reloader = Reloader(scheduler, source.read, files, SystemClock(), source.prepare)
    if source.files.by_signal:
        hangup.listen(lambda: _call_soon(loop, reloader.request))
    task = asyncio.create_task(reloader.run(watches=source.files.watches), name="reload")
    try:
        yield
    finally:
        # A process that shuts down starts no reload; and the signal must not cut the shutdown short either.
        if source.files.by_signal:
            hangup.unlisten()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _cannot_reload() -> None:
    Log("reload").warning("SIGHUP changes nothing: a shadow does not reload its configuration. Restart it instead")


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """From a signal handler, which may interrupt anything, also the loop that is about to wait."""
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(callback)
