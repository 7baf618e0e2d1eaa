"""`mooring replay FILE`: recorded decisions, or what another configuration would have decided."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mooring.base.clock import parse_timestamp, timestamp
from mooring.base.errors import OperatorMistake
from mooring.cli.common import gates_option, load, plugins_option, registry_with
from mooring.cli.interruption import INTERRUPTED
from mooring.cli.output import counted, print_json, print_line, print_lines, print_progress, print_table

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates
    from mooring.recording import RecordedDecision, Recording
    from mooring.replay import ReplayedDecision, ReplayResult

COLUMNS = ("index", "time", "pod", "outcome", "node", "message")
COMPARED = ("index", "time", "pod", "was", "would", "cause", "plugin", "explanation")


@click.command()
@click.argument("file")
@click.option("--config", "config_file", metavar="FILE", help="Decide again with this KubeSchedulerConfiguration.")
@click.option("--again", is_flag=True, help="Decide again with the recorded configuration: shows what is reproduced.")
@plugins_option
@gates_option
@click.option("--pod", metavar="NAMESPACE/NAME", help="Only decisions about this pod.")
@click.option(
    "--from", "begin", metavar="TIME", help="Only from this time on (2026-01-31T12:00:00Z), or decision number."
)
@click.option("--to", "end", metavar="TIME", help="Only up to this time, or decision number.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="How to print.",
)
def replay(
    file: str,
    config_file: str | None,
    again: bool,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    pod: str | None,
    begin: str | None,
    end: str | None,
    output: str,
) -> int:
    """Show the decisions that `--record FILE` recorded, or what another configuration would have decided.

    With --config each decision is taken again on the state that was recorded, and those that differ are listed with the
    plugin that made the difference. Ends with 1 if decisions differ.

    \b
    Example:
      mooring replay cluster.recording --pod shop/web-0
      mooring replay cluster.recording --config other.yaml --plugins my_plugin.py
    """
    from mooring.recording import Recording

    if again and config_file is not None:
        raise click.UsageError("--again decides with the recorded configuration: leave out --config, or --again.")
    if (plugins or gates.changed()) and not again and config_file is None:
        raise click.UsageError("--plugins and --feature-gates are for decisions that are taken again: give --config.")
    recording = Recording.read(file)
    wanted = _Wanted(recording, pod, begin, end)
    if config_file is None and not again:
        _show(recording, [each for each in recording.decisions if wanted(each)], output)
        return 0
    if not gates.changed():
        gates = recording.gates
    return _replay(recording, wanted, config_file, plugins, gates, output)


class _Wanted:
    """Which decisions the command line names."""

    def __init__(self, recording: Recording, pod: str | None, begin: str | None, end: str | None) -> None:
        if pod is not None and "/" not in pod:
            pod = f"default/{pod}"
        if pod is not None and all(each.pod != pod for each in recording.decisions):
            from mooring.cli.explained_cluster import nearest_names

            near = nearest_names(pod, {each.pod for each in recording.decisions})
            raise OperatorMistake(f"{recording.path} has no decision about {pod}.{near}")
        self._pod = pod
        self._begin, self._end = _moment("--from", begin), _moment("--to", end)

    def __call__(self, decision: RecordedDecision) -> bool:
        if self._pod is not None and decision.pod != self._pod:
            return False
        return not self._is_before(decision, self._begin) and not self._is_behind(decision)

    @staticmethod
    def _is_before(decision: RecordedDecision, moment: float | int | None) -> bool:
        if moment is None:
            return False
        return decision.index < moment if isinstance(moment, int) else decision.time < moment

    def _is_behind(self, decision: RecordedDecision) -> bool:
        if self._end is None:
            return False
        return decision.index > self._end if isinstance(self._end, int) else decision.time > self._end


def _moment(flag: str, text: str | None) -> float | int | None:
    """A number of a decision, or a time."""
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    try:
        return parse_timestamp(text)
    except ValueError:
        raise click.UsageError(f'{flag}: "{text}" is no time such as 2026-01-31T12:00:00Z, and no number.') from None


def _show(recording: Recording, decisions: list[RecordedDecision], output: str) -> None:
    if output == "json":
        print_json(
            {
                "recording": _about(recording),
                "decisions": [
                    {"index": each.index, "time": timestamp(each.time), "kind": each.kind}
                    | {"evidence": recording.evidence(each.index)}
                    for each in decisions
                ],
            }
        )
        return
    cells = [
        (str(each.index), timestamp(each.time), each.pod, each.kind, each.node or "", each.message)
        for each in decisions
    ]
    _notes(recording.notes)
    if output == "csv":
        _print_csv(COLUMNS, cells)
        return
    first, last = recording.times
    title = f"{counted(len(recording.decisions), 'decision')} from {timestamp(first)} to {timestamp(last)}"
    shown = "" if len(cells) == len(recording.decisions) else f", {len(cells)} shown"
    print_table(f"{title}{shown}", [name.upper() for name in COLUMNS], cells)


def _about(recording: Recording) -> dict[str, Any]:
    first, last = recording.times
    return {
        "file": str(recording.path),
        "server": recording.header.server,
        "from": timestamp(first),
        "to": timestamp(last),
        "decisions": len(recording.decisions),
        "missing": recording.missing,
        "notes": recording.notes,
    }


def _replay(
    recording: Recording,
    wanted: _Wanted,
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    output: str,
) -> int:
    from mooring.replay import ReplayResult
    from mooring.replay.replaying import Replay

    registry = registry_with(plugins)
    configuration = load(config_file, registry, gates) if config_file is not None else None
    total = sum(map(wanted, recording.decisions))
    is_watched = sys.stderr.isatty()
    found: list[ReplayedDecision] = []

    def progress(count: int) -> None:
        if is_watched and (count % 100 == 0 or count == total):
            print_progress("" if count == total else f"{count:,} of {total:,} decisions")

    again = Replay(recording, configuration, registry, gates=gates, wanted=wanted)
    is_whole = True
    try:
        again.run(progress, found)
    except KeyboardInterrupt:
        is_whole = False
        if is_watched:
            print_progress("")
    result = ReplayResult()
    for each in found:
        result.add(each)
    result.notes = [*recording.notes, *again.notes]
    if not is_whole:
        result.notes.append(f"interrupted: {len(found):,} of {total:,} decisions were taken again")
    _print_result(recording, result, output, with_recorded=config_file is None)
    return INTERRUPTED if not is_whole else int(bool(result.differing))


def _print_result(recording: Recording, result: ReplayResult, output: str, *, with_recorded: bool) -> None:
    from mooring.simulator.moves import counted_moves

    causes = counted_moves([each.move for each in result.differing if each.move is not None])
    if output == "json":
        print_json(
            {
                "recording": _about(recording),
                "decisions": result.decisions,
                "same": result.same,
                "skipped": result.skipped,
                "differing": [_document(each) for each in result.differing],
                "causes": [{"cause": each.cause, "plugin": each.plugin, "decisions": each.pods} for each in causes],
                "notes": result.notes,
            }
        )
        return
    _notes(result.notes)
    if output == "csv":
        _print_csv(
            COMPARED, [tuple(str(value or "") for value in _document(each).values()) for each in result.differing]
        )
        return
    whose = "the recorded configuration" if with_recorded else "this configuration"
    print_line(
        f"{counted(result.decisions, 'decision')} taken again with {whose}: {result.same:,} the same, "
        f"{len(result.differing):,} would have differed."
    )
    for reason, count in result.skipped.items():
        print_line(f"{count:,} not taken again: {reason}.")
    if causes:
        lines = [f"  {each.pods:>6,}  {each.cause}{f' {each.plugin}' if each.plugin else ''}" for each in causes]
        print_lines("By cause:\n" + "\n".join(lines))
    if result.differing:
        cells = [
            (
                str(each.index),
                timestamp(each.time),
                each.pod,
                _outcome(each.was, each.was_kind),
                _outcome(each.would, each.would_kind),
                each.explained(),
            )
            for each in result.differing
        ]
        print_table("What would have differed", ["INDEX", "TIME", "POD", "WAS", "WOULD", "WHY"], cells)


def _outcome(node: str | None, kind: str) -> str:
    return node or kind


def _document(each: ReplayedDecision) -> dict[str, Any]:
    return {
        "index": each.index,
        "time": timestamp(each.time),
        "pod": each.pod,
        "was": _outcome(each.was, each.was_kind),
        "would": _outcome(each.would, each.would_kind),
        "cause": each.move.cause if each.move is not None else "",
        "plugin": each.move.plugin if each.move is not None else "",
        "explanation": each.explained(),
    }


def _notes(notes: list[str]) -> None:
    for note in notes:
        print_line(f"Note: {note}.", err=True)


def _print_csv(header: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *cells])
    print_lines(text.getvalue().rstrip("\n"))
