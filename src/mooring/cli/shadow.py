"""`mooring run --shadow`: decide beside another scheduler, write nothing, and report where the two agree and differ."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec
from click.core import ParameterSource

from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.gotypes import Flag, GoBool
from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.client import ApiClient
    from mooring.config import Configuration
    from mooring.scheduler import Scheduler
    from mooring.scheduler.shadow import Comparison, ShadowRun

F = TypeVar("F", bound=Callable[..., Any])

SUMMARY_SECONDS = 60.0

_NEEDS_SHADOW = {
    "scheduler_name": (
        "--scheduler-name",
        "names with --shadow the scheduler to compare with; without it, write a configuration file whose profiles "
        "have a schedulerName and give it with --config",
    ),
    "shadow_report": ("--shadow-report", "is where --shadow writes its comparisons; give --shadow too"),
}
_NOT_WITH_SHADOW = {
    "leader_elect": ("--leader-elect", "a shadow binds nothing, so several may run and none must lead; leave it out"),
    "watch_config": ("--watch-config", "a shadow compares with one configuration; restart it with the new one"),
    "reload_plugins": ("--reload-plugins", "a shadow compares with one set of plugins; restart it with the new ones"),
}


class ShadowFlags(NamedTuple):
    """As given on the command line."""

    scheduler_name: str | None = None
    report: str | None = None


class Role(msgspec.Struct, frozen=True):
    """What a scheduler is made of, and how its work is described."""

    client: Callable[..., ApiClient]
    scheduler: Callable[..., Scheduler]
    doing: str

    @staticmethod
    def ordinary() -> Role:
        from mooring.client import ApiClient
        from mooring.scheduler import build_scheduler

        return Role(ApiClient, build_scheduler, "scheduling for")


def shadow_options(command: F) -> F:
    """The flags; the command gets them among its `**flags`."""
    for option in (
        click.option(
            "--shadow-report", default=None, metavar="FILE", help="With --shadow: each comparison as a line of JSON."
        ),
        click.option(
            "--scheduler-name",
            default=None,
            metavar="NAME",
            help="With --shadow: the schedulerName whose pods to compare, instead of the profiles' own.",
        ),
        click.option(
            "--shadow",
            cls=Flag,
            type=GoBool(),
            default=False,
            metavar="BOOL",
            help="Only watch: decide for the pods of another scheduler, bind nothing, and report where the two differ.",
        ),
    ):
        command = option(command)
    return command


def shadow_flags(flags: dict[str, Any]) -> ShadowFlags | None:
    """Takes the shadow's flags out; None if no shadow is wanted. What does not go together is refused, all at once."""
    if problems := shadow_problems(flags):
        raise OperatorMistake.found_in("the command line", problems)
    is_shadow = flags.pop("shadow")
    shadow_only = {name: flags.pop(name) for name in _NEEDS_SHADOW}
    if is_shadow and _is_default("secure_port"):
        flags["secure_port"] = 0  # the port is that of the scheduler at work, which may run on this machine
    return ShadowFlags(shadow_only["scheduler_name"], shadow_only["shadow_report"]) if is_shadow else None


def shadow_problems(flags: Mapping[str, Any]) -> list[Problem]:
    """What does not go together with a shadow, or with none."""
    return list(_problems(_NOT_WITH_SHADOW if flags["shadow"] else _NEEDS_SHADOW, flags))


def _is_default(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.DEFAULT


def decided_with(configuration: Configuration, flags: ShadowFlags | None) -> Configuration:
    """The configuration, for the pods that the flags name."""
    if flags is None or flags.scheduler_name is None:
        return configuration
    from mooring.scheduler.shadow import deciding_for

    return deciding_for(configuration, flags.scheduler_name)


def _problems(rules: Mapping[str, tuple[str, str]], given: Mapping[str, Any]) -> list[Problem]:
    return [Problem(flag, words) for name, (flag, words) in rules.items() if given.get(name) not in (None, False)]


@contextlib.asynccontextmanager
async def shadowing(flags: ShadowFlags | None) -> AsyncIterator[Role]:
    """What makes `schedule` a shadow. Meanwhile a line per comparison, and a summary now and then and at the end."""
    if flags is None:
        yield Role.ordinary()
        return
    from mooring.scheduler.shadow import JsonLines, ReadOnlyClient, build_shadow

    made: list[ShadowRun] = []
    report = JsonLines(flags.report) if flags.report is not None else None

    def print_comparison(comparison: Comparison) -> None:
        print_line(comparison.in_one_line())
        if report is not None:
            report.write(comparison)

    def make(*arguments: Any, **options: Any) -> Scheduler:
        made.append(build_shadow(*arguments, report=print_comparison, **options))
        return made[0].scheduler

    summing_up = asyncio.create_task(_sum_up_now_and_then(made))
    try:
        yield Role(ReadOnlyClient, make, "shadowing (writing nothing)")
    finally:
        summing_up.cancel()
        _sum_up(made)
        if report is not None:
            report.close()


async def _sum_up_now_and_then(made: Sequence[ShadowRun]) -> None:
    """Whenever there is something new to sum up."""
    summed_up = 0
    while True:
        await asyncio.sleep(SUMMARY_SECONDS)
        total = sum(each.summary.total for each in made)
        if total != summed_up:
            summed_up = total
            _sum_up(made)


def _sum_up(made: Sequence[ShadowRun]) -> None:
    for each in made:
        for line in each.summary.lines():
            print_line(line)
