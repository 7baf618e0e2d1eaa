"""kube-scheduler's command line: its syntax, and an answer for each of its flags."""

import click
import pytest

from mooring.base.errors import OperatorMistake
from mooring.cli.goflags import NOT_YET, REMOVED, GoDuration, normalised

FORMS = {
    "a value after an equals sign": (["--v=6"], ["--v=6"]),
    "a value as the next word": (["--v", "6"], ["--v=6"]),
    "a short flag with an equals sign": (["-v=6"], ["--v=6"]),
    "a short flag with its value attached": (["-v6"], ["--v=6"]),
    "a short flag and the next word": (["-v", "6"], ["--v=6"]),
    "a switch": (["--leader-elect"], ["--leader-elect=true"]),
    "a switch with a value": (["--leader-elect=false"], ["--leader-elect=false"]),
    "a switch does not take the next word": (["--leader-elect", "x"], ["--leader-elect=true", "x"]),
    "one dash is as good as two": (["-config=f.yaml"], ["--config=f.yaml"]),
    "underscores are dashes": (["--logging_format=json"], ["--logging-format=json"]),
    "a value with an equals sign": (["--config=a=b"], ["--config=a=b"]),
    "several plugins": (["--plugins", "a.py", "--plugins=b.py"], ["--plugins=a.py", "--plugins=b.py"]),
    "help": (["-h"], ["--help"]),
}


@pytest.mark.parametrize(("given", "read"), FORMS.values(), ids=FORMS.keys())
def test_flags_are_read_as_kube_scheduler_reads_them(given, read):
    assert normalised(given) == read


def problems_of(*arguments: str) -> dict[str, str]:
    with pytest.raises(OperatorMistake) as refused:
        normalised(arguments)
    return {problem.path: problem.message for problem in refused.value.problems}


@pytest.mark.parametrize("flag", [flag for flags in NOT_YET.values() for flag in flags.split()])
def test_a_flag_whose_feature_is_not_there_yet_is_refused_with_its_feature(flag):
    assert "does not have yet" in problems_of(f"--{flag}=x")[f"--{flag}"]


@pytest.mark.parametrize("flag", sorted(REMOVED))
def test_a_flag_removed_long_ago_points_to_the_configuration_file(flag):
    assert "--config" in problems_of(f"--{flag}=x")[f"--{flag}"]


def test_all_problems_are_told_at_once():
    assert set(problems_of("--secure-port", "10259", "--port=1", "--profiling", "--confg=x")) == {
        "--secure-port",
        "--port",
        "--profiling",
        "--confg",
    }


def test_a_mistyped_flag_is_guessed():
    assert 'Did you mean "--config"' in problems_of("--confg=x")["--confg"]


def test_a_flag_that_lacks_its_value_says_so():
    assert problems_of("--config") == {"--config": "needs a value"}


def test_a_duration_is_read_as_go_reads_it():
    assert GoDuration().convert("1h30m", None, None) == 5400


def test_what_is_no_duration_is_refused():
    with pytest.raises(click.BadParameter, match='must be a duration such as "5m" or "90s", got "soon"'):
        GoDuration().convert("soon", None, None)
