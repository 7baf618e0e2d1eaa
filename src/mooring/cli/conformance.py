"""`mooring conformance`: does Mooring decide as the real kube-scheduler does?"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

import mooring
from mooring.base.errors import OperatorMistake
from mooring.cli.common import plugin_named
from mooring.cli.output import print_lines

if TYPE_CHECKING:
    from mooring_conformance.reporting import Printer
    from mooring_conformance.running import Options

FORMS = {"plain": ("plain",), "vector": ("vector",), "both": ("plain", "vector")}


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--family", "families", multiple=True, metavar="F", help="Only this family. May be given several times.")
@click.option("--plugin", "plugins", multiple=True, metavar="NAME", help="Compare only the results of this plugin.")
@click.option(
    "--form",
    type=click.Choice(list(FORMS)),
    default="both",
    show_default=True,
    help="Which form of a plugin's rule runs where it has both.",
)
@click.option(
    "--churn/--no-churn",
    default=True,
    show_default=True,
    help="Decide once more after the cluster has changed and changed back.",
)
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="RECORDER", help="Compare fresh cases with this recorder."
)
@click.option("--slow", is_flag=True, help="Look for hostile pods that are slow to decide.")
@click.option("--seed", metavar="S", help="Which fresh cases.  [default: 1]")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="How many of a family.  [default: 100]")
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where fresh cases that differ are written, made small.  [default: differing.jsonl]",
)
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="How many processes work.")
@click.option(
    "--show", type=click.IntRange(min=0), default=3, show_default=True, help="Differing cases to show of a family."
)
def conformance(
    files: tuple[Path, ...],
    families: tuple[str, ...],
    plugins: tuple[str, ...],
    form: str,
    churn: bool,
    against: Path | None,
    slow: bool,
    seed: str | None,
    count: int | None,
    write: Path | None,
    jobs: int,
    show: int,
) -> int:
    """Decide cases and compare with what kube-scheduler decided. Ends with 1 if any differs.

    FILES hold one {"case": …, "expect": …} a line and may be compressed (.gz, .xz); without any, all 9,300 recorded
    cases are run: those of kube-scheduler, then those of its pod groups and of community plugins. With --against, fresh
    random cases are decided by the real kube-scheduler (scripts/build-recorder builds the program), and a case that
    differs is made small and written to a file that this command can run again. Families of community plugins, and
    gang, are decided by recorders of their own, and are run where --family names them.

    With --slow, hostile pods are made and changed towards slower ones. The slowest decision of each plugin is printed
    with its CPU time and, with --against, kube-scheduler's for the same pod; one that takes more than a second and ten
    times kube-scheduler's time is made small and ends the command with 1.

    \b
    Example:
      mooring conformance
      mooring conformance --against $(scripts/build-recorder) --family interpod --seed 7 --count 2000
      mooring conformance --slow --against $(scripts/build-recorder) --seed 7 --count 200
    """
    _check_package()
    from mooring_conformance.cases import check_appendable, family_of, recorded_files
    from mooring_conformance.generate import FAMILIES
    from mooring_conformance.generate.variations import varied_families
    from mooring_conformance.reporting import Printer
    from mooring_conformance.running import Options, Way, processes

    known = [*sorted(FAMILIES), *varied_families()] if against else list(map(family_of, recorded_files()))
    for family in families:
        if family not in known:
            raise click.BadParameter(f'"{family}" is none of {", ".join(known)}.', param_hint="--family")
    for plugin in plugins:
        plugin_named(plugin)
    if files and (families or against or slow):
        raise click.UsageError("FILES are run as they are: without --family, --against and --slow.")
    if slow and (families or plugins):
        raise click.UsageError("--slow makes pods of every shape: without --family and --plugin.")
    if not against and not slow and (seed or count or write):
        raise click.UsageError("--seed, --count and --write are about fresh cases: they need --against or --slow.")
    found = write or Path("slow.jsonl" if slow else "differing.jsonl")
    if against:
        check_appendable(found)
    if slow:
        return _look_for_slow(seed or "1", count or 100, against, found)
    ways = tuple(Way(each) for each in FORMS[form]) + (Way.CHURNED,) * churn
    options = Options(ways, frozenset(plugins))
    printer = Printer(print_lines, show)
    with processes(jobs) as pool:
        if against:
            chosen = families or tuple(sorted(FAMILIES))
            _fuzz(chosen, seed or "1", count or 100, against, found, options, pool, printer)
        else:
            _run(files, families, options, pool, printer)
    printer.total()
    return int(printer.any_differs)


def _check_package() -> None:
    """The recorded cases and the comparison are a distribution of their own, with Mooring's version."""
    install = f"in a checkout of Mooring {mooring.__version__}, run `pip install . ./conformance`"
    try:
        import mooring_conformance
    except ModuleNotFoundError as error:
        if error.name != "mooring_conformance":
            raise
        raise OperatorMistake(
            f"the recorded decisions of kube-scheduler are not installed. They are in Mooring's repository: {install}."
        ) from None
    if mooring_conformance.__version__ != mooring.__version__:
        raise OperatorMistake(
            f"mooring-conformance {mooring_conformance.__version__} does not compare with Mooring "
            f"{mooring.__version__}: {install}."
        )


def _run(
    files: tuple[Path, ...], families: tuple[str, ...], options: Options, pool: ProcessPoolExecutor, printer: Printer
) -> None:
    from mooring_conformance.cases import family_of, numbered, recorded_files
    from mooring_conformance.running import run

    for file in files or recorded_files():
        family = family_of(file)
        if not families or family in families:
            printer.family(run(family, list(numbered(file)), options, pool))


def _fuzz(
    families: tuple[str, ...],
    seed: str,
    count: int,
    against: Path,
    write: Path,
    options: Options,
    pool: ProcessPoolExecutor,
    printer: Printer,
) -> None:
    from mooring_conformance.cases import append
    from mooring_conformance.fuzzing import check_recorder, fuzz, shrunk_cases
    from mooring_conformance.generate import FAMILIES
    from mooring_conformance.recorder import Recorder

    with Recorder(against) as recorder:
        for family in families:
            if family not in FAMILIES:
                check_recorder(family, recorder, options)
            report = fuzz(family, seed, count, recorder, options, pool)
            printer.family(report)
            for small in shrunk_cases(report, seed, recorder, options, printer.most):
                append(write, small)
                printer.small(small, write)


def _look_for_slow(seed: str, count: int, against: Path | None, write: Path) -> int:
    from mooring_conformance.cases import append
    from mooring_conformance.recorder import Recorder
    from mooring_conformance.reporting import SlowPrinter
    from mooring_conformance.slow import Measured, as_recorded, measure, search, shrunk

    with Recorder(against, timed=True) if against else nullcontext() as recorder:
        printer = SlowPrinter(print_lines)
        worst: dict[str, Measured] = {}
        for found in search(seed, count, lambda recipe: measure(recipe, recorder)):
            printer.measured(found)
            if found.plugin not in worst or found.score > worst[found.plugin].score:
                worst[found.plugin] = found
        wrong = [*printer.wrong, *(found for found in worst.values() if found.is_slow)]
        printer.worst(worst)
        for found in wrong:
            is_alike = (lambda each: bool(each.differences)) if found.differences else (lambda each: each.is_slow)
            small = shrunk(found, lambda recipe: measure(recipe, recorder), is_alike)
            if recorder is not None:
                append(write, as_recorded(small, recorder))
            printer.small(small, write if recorder is not None else None)
    return int(bool(wrong))
