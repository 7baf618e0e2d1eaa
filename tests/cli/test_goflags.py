"""kube-scheduler's command line: its syntax, and advice for flags that it no longer has."""

import click
import pytest

from mooring.base.errors import OperatorMistake
from mooring.cli.goflags import REMOVED, KnownFlags, normalised, refusal
from mooring.cli.gotypes import GoDuration, GoList, shown

FLAGS = KnownFlags(
    frozenset(["config", "v", "leader-elect", "logging-format", "plugins", "help", "version", "cert-dir"]),
    frozenset(["leader-elect", "help", "version"]),
)

FORMS = {
    "a value after an equals sign": (["--v=6"], ["--v=6"]),
    "a value as the next word": (["--v", "6"], ["--v=6"]),
    "a short flag with an equals sign": (["-v=6"], ["--v=6"]),
    "a short flag with its value attached": (["-v6"], ["--v=6"]),
    "a short flag and the next word": (["-v", "6"], ["--v=6"]),
    "a switch": (["--leader-elect"], ["--leader-elect=true"]),
    "a switch with a value": (["--leader-elect=false"], ["--leader-elect=false"]),
    "a switch does not take the next word": (["--leader-elect", "x"], ["--leader-elect=true", "x"]),
    "the version may have a value": (["--version=raw"], ["--version=raw"]),
    "one dash is as good as two": (["-config=f.yaml"], ["--config=f.yaml"]),
    "underscores are dashes": (["--logging_format=json"], ["--logging-format=json"]),
    "a value with an equals sign": (["--config=a=b"], ["--config=a=b"]),
    "an empty value": (["--cert-dir", "", "--config="], ["--cert-dir=", "--config="]),
    "several plugins": (["--plugins", "a.py", "--plugins=b.py"], ["--plugins=a.py", "--plugins=b.py"]),
    "help": (["-h"], ["--help"]),
}


@pytest.mark.parametrize(("given", "read"), FORMS.values(), ids=FORMS.keys())
def test_flags_are_read_as_kube_scheduler_reads_them(given, read):
    assert normalised(given, FLAGS) == read


def problems_of(*arguments: str) -> dict[str, str]:
    with pytest.raises(OperatorMistake) as refused:
        normalised(arguments, FLAGS)
    return {problem.path: problem.message for problem in refused.value.problems}


@pytest.mark.parametrize("flag", sorted(REMOVED))
def test_the_error_of_a_removed_flag_names_what_to_do_instead(flag):
    problem = problems_of(f"--{flag}=x")[f"--{flag}"]
    assert problem == f"was removed from kube-scheduler: {REMOVED[flag]}"


def test_a_flag_that_a_command_has_again_is_taken():
    """`--scheduler-name` was removed from kube-scheduler, and a command of ours may have it."""
    assert refusal("scheduler-name", KnownFlags(frozenset(["scheduler-name"]), frozenset())) is None


def test_all_problems_are_reported_at_once():
    assert set(problems_of("--port=1", "--policy-configmap", "x", "--confg=x", "--config")) == {
        "--port",
        "--policy-configmap",
        "--confg",
        "--config",
    }


def test_a_mistyped_flag_is_guessed():
    assert 'Did you mean "--config"' in problems_of("--confg=x")["--confg"]


def test_a_flag_that_lacks_its_value_is_reported():
    assert problems_of("--config") == {"--config": "needs a value"}


def test_a_duration_is_read_as_go_reads_it():
    assert GoDuration().convert("1h30m", None, None) == 5400


def test_what_is_no_duration_is_refused():
    with pytest.raises(click.BadParameter, match='must be a duration such as "5m" or "90s", got "soon"'):
        GoDuration().convert("soon", None, None)


@pytest.mark.parametrize(("text", "read"), [("", ()), ("a", ("a",)), ("a,b", ("a", "b")), ('"a,b",c', ("a,b", "c"))])
def test_a_list_has_commas(text, read):
    assert GoList().convert(text, None, None) == read


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (["a", "b"], "[a,b]"), ((), "[]"), (50.0, "50"), (7.5, "7.5"), (None, "")]
)
def test_values_are_shown_as_go_shows_them(value, text):
    assert shown(value) == text
