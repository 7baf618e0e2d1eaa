"""No command loses a file: what is there and was not written by the same option stays, and so does what is read.

The options are found in the commands themselves: one that names a file is listed here, as read or with a case.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from tests.cli.conftest import NOWHERE, Mooring, write
from tests.cli.programs import clean_environment

from mooring.bench.e2e.picture import is_picture, picture
from mooring.cli.main import cli
from mooring.cli.output_files import OutputFile
from mooring.snapshots import Header, Spool
from mooring.snapshots.file_format import write_snapshot

PRECIOUS = "my notes, of which there is no copy\n"

READ = {
    *("--allow-metric-labels-manifest", "--authentication-kubeconfig", "--authorization-kubeconfig", "--ca-file"),
    *("--authorization-always-allow-paths", "--client-ca-file", "--cluster", "--config", "--from", "--kubeconfig"),
    *("--plugins", "--recording", "--requestheader-client-ca-file", "--tls-cert-file", "--tls-private-key-file"),
    *("--tls-sni-cert-key", "--workload", "--against"),
    *("A.yaml B.yaml", "PATH...", "DOCUMENT", "POD.yaml", "WORKLOAD", "PATH"),
}
"""Options and arguments that name what is read, in every command."""
READ_ARGUMENTS = {("replay", "FILE"), ("config check", "FILE"), ("config convert", "FILE"), ("config show", "FILE")}
READ_ARGUMENTS |= {("conformance", "[FILES]...")}

TRACE = "arrival,duration,cpu\n0,100,1\n1,50,1\n"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CONFIG += "profiles:\n- schedulerName: mine\n"
GENERATED = "apiVersion: mooring.dev/v1alpha1\nkind: GeneratedWorkload\npods: 20\nseed: 3\n"
OPENB_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-a,1000,1024,1,500\n"
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-a,4000,8192,1,T4\n"
READ_BY = {"trace.csv": TRACE, "config.yaml": CONFIG, "generated.yaml": GENERATED, "lost.kubeconfig": NOWHERE}


class Case(NamedTuple):
    """A command line with one output, `{}`."""

    arguments: str
    out: str
    reads: str = ""
    """A file that the same command line reads."""
    refusal: str = "name another file, or replace it with --force"
    again: bool = True
    """Whether the file of an earlier run is replaced or continued."""
    runs: bool = True
    """Whether the command ends by itself, and needs nothing that is not here."""
    written: str = ""
    """The file in the folder that the option names."""


SIMULATE = "simulate --nodes=1 --workload=trace.csv"
COMPARE = "compare default config.yaml --nodes=1 --workload=trace.csv"
REMOVE = "name another file, or remove it"
CASES = {
    ("simulate", "--pods"): Case(f"{SIMULATE} --pods={{}}", "out.csv", "trace.csv"),
    ("simulate", "--timeline"): Case(f"{SIMULATE} --timeline={{}}", "out.csv", "trace.csv"),
    ("simulate", "--html"): Case(f"{SIMULATE} --html={{}}", "out.html", "trace.csv"),
    ("simulate", "--record"): Case(f"{SIMULATE} --record={{}}", "out", "trace.csv", refusal=REMOVE),
    ("compare", "--pods"): Case(f"{COMPARE} --pods={{}}", "out.parquet", "trace.csv"),
    ("compare", "--timeline"): Case(f"{COMPARE} --timeline={{}}", "out.parquet", "trace.csv"),
    ("compare", "--html"): Case(f"{COMPARE} --html={{}}", "out.html", "config.yaml"),
    ("trace generate", "--output"): Case("trace generate generated.yaml -o {}", "out.csv.gz", "generated.yaml"),
    ("trace import", "--output"): Case("trace import openb openb -o {}", "out.parquet", "openb/openb_pod_list.csv"),
    ("trace import", "--cluster-out"): Case(
        "trace import openb openb/openb_pod_list.csv openb/openb_node_list.csv -o x.csv --cluster-out={}",
        "out.yaml",
        "openb/openb_node_list.csv",
    ),
    ("manifests", "--output"): Case(
        "manifests --config=config.yaml --output={}",
        "out",
        refusal="name another folder, or replace it with --force",
        written="01-namespace.yaml",
    ),
    ("snapshot", "[FILE]"): Case("snapshot {} --anonymize --from=taken", "out", "taken", again=False),
    ("bench e2e", "--svg"): Case(
        "bench e2e --kubeconfig=lost.kubeconfig --svg={}", "out.svg", "lost.kubeconfig", runs=False
    ),
    ("run", "--write-config-to"): Case(
        "run --config=config.yaml --write-config-to={}", "out.yaml", "config.yaml", refusal=REMOVE
    ),
    ("run", "--shadow-report"): Case(
        "run --shadow --kubeconfig=lost.kubeconfig --shadow-report={}",
        "out",
        "lost.kubeconfig",
        refusal=REMOVE,
        runs=False,
    ),
    ("up", "--write-kubeconfig"): Case(
        "up --cluster=cluster.yaml --write-kubeconfig={}", "out", "cluster.yaml", refusal="another name", runs=False
    ),
    ("cluster", "--write-kubeconfig"): Case(
        "cluster --cluster=cluster.yaml --write-kubeconfig={}",
        "out",
        "cluster.yaml",
        refusal="another name",
        runs=False,
    ),
    ("plugin new", "--into"): Case(
        "plugin new Headroom --into={}", "out", refusal="choose another name", again=False, written="headroom.py"
    ),
    ("conformance", "--write"): Case(
        "conformance --against=recorder --write={}", "out.jsonl", "config.yaml", refusal=REMOVE, runs=False
    ),
}
ELSEWHERE = {
    ("run", "--record"): "tests/recording: the writer refuses what is no recording, and the scheduler goes on",
    ("up", "--record"): "as in `mooring run`",
    ("run", "--cert-dir"): "tests/scheduler/serving/test_certificates.py",
}


def commands(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
    else:
        yield " ".join(path), command


def names_a_file(parameter: click.Parameter) -> bool:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return False
    shown = (parameter.metavar or parameter.name or "").upper()
    return (
        isinstance(parameter.type, OutputFile | click.Path | click.File)
        or any(word in shown for word in ("FILE", "FOLDER", "PATH", "DIR", "YAML", "DOCUMENT"))
        or re.match(r"(also )?(write|draw|where to write)\b", getattr(parameter, "help", "") or "", re.I) is not None
    )


def shown(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(click.Context(click.Command("x")))


FILES = {
    (command, shown(parameter)): parameter
    for command, found in commands()
    for parameter in found.params
    if names_a_file(parameter)
}


def test_every_option_that_names_a_file_is_read_or_has_a_case():
    """A new one that is not listed may overwrite a file."""
    written = {(command, name) for command, name in FILES if name not in READ and (command, name) not in READ_ARGUMENTS}
    assert written == CASES.keys() | ELSEWHERE.keys()


def test_an_option_that_is_an_output_is_never_listed_as_read():
    outputs = {key for key, parameter in FILES.items() if isinstance(parameter.type, OutputFile)}
    assert outputs <= CASES.keys()


@pytest.fixture(autouse=True)
def inputs() -> None:
    for name, text in READ_BY.items():
        write(name, text)
    write("cluster.yaml", "apiVersion: mooring.dev/v1alpha1\nkind: SimulatedNodes\ncount: 1\n")
    write("openb/openb_pod_list.csv", OPENB_PODS)
    write("openb/openb_node_list.csv", OPENB_NODES)
    with Spool() as spool:
        write_snapshot("taken", Header(taken_at="2026-01-31T12:00:00Z"), spool)


def ids(keys: list[tuple[str, str]]) -> list[str]:
    return [" ".join(key) for key in keys]


each_case = pytest.mark.parametrize("case", CASES.values(), ids=ids(list(CASES)))
each_that_reads = pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.reads], ids=ids([key for key, case in CASES.items() if case.reads])
)
each_that_runs = pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.runs], ids=ids([key for key, case in CASES.items() if case.runs])
)


def line(case: Case, out: str, *more: str) -> list[str]:
    return [word.format(out) for word in case.arguments.split()] + list(more)


def precious(case: Case) -> Path:
    return Path(write(os.path.join(case.out, case.written) if case.written else case.out, PRECIOUS))


@each_case
def test_a_file_that_mooring_did_not_write_stays(mooring: Mooring, case: Case):
    file = precious(case)
    result = mooring(*line(case, case.out))
    assert (result.code, file.read_text()) == (2, PRECIOUS), result.err
    assert str(file) in result.err
    assert case.refusal in result.err


SPELLINGS = {
    "itself": lambda path: str(path),
    "another spelling": lambda path: f"{Path.cwd()}/./{path.parent}/{path.name}",
    "a symbolic link": lambda path: linked(path, os.symlink),
    "a hard link": lambda path: linked(path, os.link),
}


def linked(path: Path, link: object) -> str:
    other = f"other{path.suffix}"
    link(path.absolute(), other)  # type: ignore[operator]
    return other


@each_that_reads
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_file_that_the_command_reads_is_not_written_to(mooring: Mooring, case: Case, spell):
    before = Path(case.reads).read_bytes()
    other = spell(Path(case.reads))
    result = mooring(*line(case, other))
    assert (result.code, Path(case.reads).read_bytes(), Path(other).read_bytes()) == (2, before, before), result.err


@each_that_runs
def test_a_second_run_replaces_what_the_first_one_wrote(mooring: Mooring, case: Case):
    first = mooring(*line(case, case.out))
    assert first.code == 0, first.err
    again = mooring(*line(case, case.out))
    assert again.code == (0 if case.again else 2), again.err


@pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if "--force" in case.refusal and case.runs],
    ids=ids([key for key, case in CASES.items() if "--force" in case.refusal and case.runs]),
)
def test_force_replaces_any_file(mooring: Mooring, case: Case):
    file = precious(case)
    result = mooring(*line(case, case.out, "--force"))
    assert result.code == 0, result.err
    assert file.read_bytes() != PRECIOUS.encode()


def test_an_input_of_the_same_kind_is_an_input_all_the_same(mooring: Mooring):
    assert mooring("trace", "generate", "generated.yaml", "-o", "made.csv").code == 0
    before = Path("made.csv").read_bytes()
    result = mooring("simulate", "--workload=made.csv", "--html=./made.csv")
    assert result.code == 2
    assert "made.csv is what --workload reads" in result.err
    assert Path("made.csv").read_bytes() == before


def test_two_outputs_of_one_name_are_refused_also_by_force(mooring: Mooring):
    result = mooring(*f"{SIMULATE} --pods=out.csv --timeline=./out.csv --force".split())
    assert result.code == 2
    assert "./out.csv is also written by --pods" in result.err
    assert not Path("out.csv").exists()


def test_an_empty_file_is_replaced(mooring: Mooring):
    """That of `mktemp`."""
    write("out.html", "")
    assert mooring(*f"{SIMULATE} --html=out.html".split()).code == 0
    assert Path("out.html").stat().st_size


def test_a_table_with_other_columns_is_no_table_of_ours(mooring: Mooring):
    assert mooring(*f"{SIMULATE} --pods=out.csv".split()).code == 0
    write("out.csv", "rating," + Path("out.csv").read_text())
    assert mooring(*f"{SIMULATE} --pods=out.csv".split()).code == 2


def test_the_picture_of_an_earlier_benchmark_is_known(tmp_path: Path):
    (tmp_path / "x.svg").write_text(picture([], "note"))
    assert is_picture(str(tmp_path / "x.svg"))


def no_more_bytes() -> None:
    """As on a full disk: no write to a file succeeds."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@each_that_runs
def test_a_full_disk_is_a_mistake_that_names_the_file_and_leaves_nothing(case: Case, home: Path):
    before = sorted(Path().rglob("*"))
    command = [sys.executable, "-m", "mooring", *line(case, case.out)]
    done = subprocess.run(
        command, env=clean_environment(home), capture_output=True, text=True, check=False, preexec_fn=no_more_bytes
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert "x.csv" in done.stderr if "x.csv" in command else case.out in done.stderr
    assert sorted(Path().rglob("*")) == before


def test_a_full_disk_under_the_standard_output_is_a_mistake(home: Path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "mooring", "version"]
        done = subprocess.run(
            command, env=clean_environment(home), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (
        2,
        "Error: the standard output cannot be written: No space left on device.\n",
    )
