"""`mooring config check`, `convert` and `show`."""

from pathlib import Path

import yaml
from tests.cli.conftest import Mooring, write

GOOD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""
THREE_MISTAKES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 140
profiles:
- schedulerName: a
  plugins:
    score:
      enabled:
      - name: NodeResourceFit
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {tipe: LeastAllocated}
"""
# The two configurations that their authors published, to the letter.
EXAMPLES = Path(__file__).parents[2] / "examples"
SCORE_BY_LABEL = (EXAMPLES / "score-by-label" / "config.yaml").read_text(encoding="utf-8")
SAMPLE = (EXAMPLES / "sample-filter" / "scheduler-config.yaml").read_text(encoding="utf-8")


def test_a_good_file_is_reported_as_good(mooring: Mooring):
    result = mooring("config", "check", write("good.yaml", GOOD))
    assert (result.code, result.err) == (0, "")
    assert result.out == "good.yaml is a good v1 configuration. Profiles: default-scheduler\n"


def test_all_mistakes_are_reported_at_once_with_line_and_path(mooring: Mooring):
    result = mooring("config", "check", write("bad.yaml", THREE_MISTAKES))
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("Error: bad.yaml has 3 problems.\n")
    for place in (
        "percentageOfNodesToScore (line 3)\n",
        "profiles[0].plugins.score.enabled[0].name (line 9)\n",
        "profiles[0].pluginConfig[0].args.scoringStrategy.tipe (line 13)\n",
    ):
        assert f"\n  {place}" in result.err
    assert "[0-100], got 140" in result.err
    assert 'Did you mean "NodeResourcesFit"?' in result.err
    assert 'unknown field "tipe". Did you mean "type"?' in result.err


def test_an_old_version_is_checked_as_it_is(mooring: Mooring):
    result = mooring("config", "check", write("old.yaml", SCORE_BY_LABEL))
    assert result.code == 0
    assert "is a good v1beta2 configuration" in result.out
    assert "scorebylabel" in result.out


def test_warnings_name_the_field_and_do_not_refuse(mooring: Mooring):
    result = mooring("config", "check", write("old.yaml", SAMPLE))
    assert result.code == 0
    assert "Warning: profiles[0].plugins.preScore (line 11): preScore is off for TaintToleration" in result.err
    assert "with 3 warnings" in result.out


def test_what_was_converted_is_a_good_v1_file_that_means_the_same(mooring: Mooring):
    for name, text in {"score.yaml": SCORE_BY_LABEL, "sample.yaml": SAMPLE}.items():
        converted = mooring("config", "convert", write(name, text))
        assert converted.code == 0
        assert yaml.safe_load(converted.out)["apiVersion"] == "kubescheduler.config.k8s.io/v1"
        write(f"new-{name}", converted.out)
        assert mooring("config", "check", f"new-{name}").code == 0
        assert mooring("config", "show", f"new-{name}").out == mooring("config", "show", name).out


def test_converting_prints_nothing_but_the_file(mooring: Mooring):
    result = mooring("config", "convert", write("old.yaml", SAMPLE))
    assert "Warning" not in result.out
    assert "Warning" in result.err


def test_show_lists_plugins_by_point_in_order_with_weight_and_arguments(mooring: Mooring):
    result = mooring("config", "show", write("old.yaml", SCORE_BY_LABEL))
    assert result.code == 0
    lines = [line.split(maxsplit=1) for line in result.out.splitlines()]
    assert lines[0] == ["Profile", "scorebylabel"]
    assert ["score", "ScoreByLabel x1"] in lines
    filters = next(line[1] for line in lines if line[0] == "filter")
    assert filters.startswith("NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, ")
    assert ["ScoreByLabel", '{"labelKey":"score-by-label"}'] in lines


def test_show_has_every_profile(mooring: Mooring):
    two = GOOD + "profiles: [{schedulerName: one}, {schedulerName: two}]\n"
    assert [
        line for line in mooring("config", "show", write("two.yaml", two)).out.splitlines() if "Profile" in line
    ] == [
        "Profile one",
        "Profile two",
    ]


def test_a_plugin_of_ones_own_is_known_with_plugins(mooring: Mooring):
    write(
        "mine.py",
        "from mooring.framework import Plugin\nclass Mine(Plugin):\n    def score(self, pod, node, cycle): return 1\n",
    )
    file = write("mine.yaml", GOOD + "profiles: [{schedulerName: x, plugins: {score: {enabled: [{name: Mine}]}}}]\n")
    assert mooring("config", "check", file).code == 2
    assert mooring("config", "check", file, "--plugins", "mine.py").code == 0


def test_files_that_cannot_be_read(mooring: Mooring):
    Path("bytes.yaml").write_bytes(b"\xff\xfe")
    cases = {
        "missing.yaml": "missing.yaml cannot be read: No such file or directory.",
        ".": ". cannot be read: Is a directory.",
        "bytes.yaml": "bytes.yaml is not a text file",
        write("broken.yaml", "a: [\n"): "broken.yaml (line 2)",
    }
    for file, message in cases.items():
        result = mooring("config", "check", file)
        assert result.code == 2
        assert message in result.err


def test_a_mistyped_subcommand_is_guessed(mooring: Mooring):
    result = mooring("config", "chek", "f.yaml")
    assert result.code == 2
    assert "check" in result.err


def test_feature_gates_change_what_the_defaults_are(mooring: Mooring):
    good = write("good.yaml", GOOD)
    assert "NodeDeclaredFeatures" in mooring("config", "show", good).out
    assert "NodeDeclaredFeatures" not in mooring("config", "show", good, "--feature-gates=NodeDeclaredFeatures=0").out
    assert mooring("config", "check", good, "--feature-gates", "Nope=true").code == 2
    assert mooring("config", "convert", good, "--feature-gates", "kube:NodeDeclaredFeatures=false").code == 0


def test_plugins_for_pod_groups_are_refused_with_the_reason(mooring: Mooring):
    for name in ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"):
        plugins = f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {name}}}]}}}}}}]\n"
        result = mooring("config", "check", write("gang.yaml", GOOD + plugins))
        assert result.code == 2
        assert f'plugin "{name}" is about pod groups: it needs --feature-gates ' in result.err


def test_show_prints_durations_that_can_be_pasted_into_a_file(mooring: Mooring):
    shown = mooring("config", "show", write("good.yaml", GOOD)).out
    line = next(line for line in shown.splitlines() if line.split()[:1] == ["DynamicResources"])
    args = line.split(maxsplit=1)[1]
    assert args == '{"filterTimeout":"10s","bindingTimeout":"10m0s"}'
    profile = f"profiles: [{{schedulerName: a, pluginConfig: [{{name: DynamicResources, args: {args}}}]}}]\n"
    again = mooring("config", "show", write("again.yaml", GOOD + profile))
    assert (again.code, line in again.out.splitlines()) == (0, True)


BINDER = """\
from mooring.framework import Plugin, Skip

class Mine(Plugin):
    async def bind(self, pod, node, cycle):
        return Skip()
"""


def test_check_warns_of_a_bind_plugin_that_is_never_called(mooring: Mooring):
    write("mine.py", BINDER)
    plugins = "profiles: [{schedulerName: a, plugins: {multiPoint: {enabled: [{name: Mine}]}}}]\n"
    result = mooring("config", "check", write("behind.yaml", GOOD + plugins), "--plugins", "mine.py")
    assert result.code == 0
    assert "the bind of Mine is never called: DefaultBinder comes first and binds every pod." in result.err
    bind = result.err.partition("Order them: ")[2].strip()
    assert bind == 'bind: {disabled: [{name: "*"}], enabled: [{name: Mine}, {name: DefaultBinder}]}'
    ordered = f"profiles: [{{schedulerName: a, plugins: {{multiPoint: {{enabled: [{{name: Mine}}]}}, {bind}}}}}]\n"
    result = mooring("config", "check", write("before.yaml", GOOD + ordered), "--plugins", "mine.py")
    assert (result.code, result.err) == (0, "")
