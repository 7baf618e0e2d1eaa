"""Fresh cases, decided by the real kube-scheduler and by us; a case that differs is made small."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace

import msgspec

from mooring.base.errors import OperatorMistake
from mooring_conformance.cases import community_files, decoded, family_of, read
from mooring_conformance.comparing import Difference
from mooring_conformance.generate import generate
from mooring_conformance.recorder import Json, Recorder
from mooring_conformance.running import CHUNK, Differing, Options, Report, run_case, run_lines
from mooring_conformance.shrinking import Shrinker

CHECKED = 3
"""So many recorded cases are decided again before fresh ones."""

Kind = tuple[str, ...]
"""What is different, and whose rule it is; of results, which."""


def fuzz(family: str, seed: str, count: int, recorder: Recorder, options: Options, pool: ProcessPoolExecutor) -> Report:
    """So many fresh cases of a family. They are recorded here while the pool decides those before."""
    report = Report(family, count)
    under_way: list[Future[list[Differing]]] = []
    for start in range(0, count, CHUNK):
        lines = [_recorded(family, seed, number, recorder) for number in range(start, min(start + CHUNK, count))]
        under_way.append(pool.submit(run_lines, lines, options))
    for chunk in under_way:
        report.differing += chunk.result()
    return report


def _recorded(family: str, seed: str, number: int, recorder: Recorder) -> tuple[str, bytes]:
    case = generate(family, seed, number)
    return case["name"], msgspec.json.encode({"case": case, "expect": recorder.record(case)})


def check_recorder(family: str, recorder: Recorder, options: Options) -> None:
    """Whether it is the recorder of this family: it decides what is recorded as it was recorded."""
    (file,) = [each for each in community_files() if family_of(each) == family]
    for line in read(file)[:CHECKED]:
        case = msgspec.json.decode(line)["case"]
        again = msgspec.json.encode({"case": case, "expect": recorder.record(case)})
        if run_case(decoded(again, "a recorded case"), options):
            raise OperatorMistake(
                f"{recorder} decides {case['name']} of family {family} otherwise than recorded: it is the recorder of "
                "other plugins, or of another version."
            )


def kinds(differing: list[Differing]) -> Iterator[Kind]:
    return (kind_of(difference) for each in differing for difference in each.differences)


def kind_of(difference: Difference) -> Kind:
    if difference.kind == "result":
        return difference.kind, difference.where
    return difference.kind, difference.plugin


def shrunk_cases(report: Report, seed: str, recorder: Recorder, options: Options, most: int) -> Iterator[Json]:
    """For each kind of difference its first case, made small, with kube-scheduler's decision."""
    firsts: dict[Kind, Differing] = {}
    for differing in report.differing:
        firsts.setdefault(kind_of(differing.differences[0]), differing)
    for kind, differing in list(firsts.items())[:most]:
        number = int(differing.name.rpartition("-")[2])
        ways = tuple(way for way in options.ways if way.value in differing.ways) or options.ways
        yield shrunk(generate(report.family, seed, number), kind, recorder, replace(options, ways=ways))


def shrunk(case: Json, kind: Kind, recorder: Recorder, options: Options) -> Json:
    """The case and its recorded decision, made small while it still differs in this kind."""

    def recorded(smaller: Json) -> Json:
        return {"case": smaller, "expect": recorder.record(smaller)}

    def still_differs(smaller: Json) -> bool:
        line = msgspec.json.encode(recorded(smaller))
        return kind in kinds(run_case(decoded(line, "a smaller case"), options))

    return recorded(Shrinker(still_differs).shrink(case))
