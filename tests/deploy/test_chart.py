"""The Helm chart writes what `mooring manifests` does: by its default values, and by those that the command prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.command import printed

from mooring import __version__

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "deploy" / "helm" / "mooring"
NAMESPACE = "mooring-system"
PLUGIN = '''
from mooring.framework import Objects, Plugin
from mooring.objects.workloads import Service


class Quiet(Plugin):
    """It's "quiet": {{ .Values }} means nothing to it."""

    def __init__(self, services: Objects[Service]) -> None: ...

    def score(self, pod, node, cycle):
        return 0
'''
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}  # "alone": 'yes'
profiles:
- schedulerName: quiet.one
  plugins: {multiPoint: {enabled: [{name: Quiet}], disabled: [{name: VolumeBinding}]}}
"""


def helm() -> str:
    """The program, if it can be had; the test is skipped with the reason if not."""
    version = re.search(
        r"helm\.sh/helm/v3 (v[0-9.]+)", (REPOSITORY / "scripts/helm/go.mod").read_text(encoding="utf-8")
    )
    assert version is not None
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = Path(os.environ.get("MOORING_CACHE") or caches / "mooring") / "bin" / f"helm-{version[1]}" / "helm"
    found = shutil.which("helm") or shutil.which(cached)
    if found is None:
        pytest.skip(f"there is no helm on the PATH or at {cached}; `scripts/build-helm` builds it (needs Go)")
    return found


def documents(text: str) -> dict[tuple[str, str], Any]:
    """By kind and name; the namespace itself is what `helm install --create-namespace` makes."""
    found = [document for document in yaml.safe_load_all(text) if document and document["kind"] != "Namespace"]
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(by_name) == len(found)
    return by_name


def rendered(*flags: str) -> dict[tuple[str, str], Any]:
    done = subprocess.run(
        [helm(), "template", "release", str(CHART), f"--namespace={NAMESPACE}", *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def test_the_default_values_are_those_of_the_default_configuration():
    text = printed(f"--config={CHART / 'scheduler.yaml'}", "--helm-values")
    assert (CHART / "values.yaml").read_text(encoding="utf-8") == text


def test_the_chart_has_the_version_of_the_package():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.real
def test_the_default_values_give_what_the_command_writes():
    assert rendered() == documents(printed(f"--config={CHART / 'scheduler.yaml'}"))


@pytest.mark.real
def test_controllers_are_switched_on_by_a_value():
    assert rendered("--set=controllers.enabled=true") == documents(
        printed(f"--config={CHART / 'scheduler.yaml'}", "--controllers")
    )


OPTIONS = {
    "a second scheduler with a plugin of one's own": ("--plugins=quiet.py",),
    "a shadow": ("--plugins=quiet.py", "--as=shadow"),
    "another image, name and verbosity": (
        *("--plugins=quiet.py", "--image=here/mooring:custom", "--name=other", "--verbosity=5"),
        *("--", "--pod-max-in-unschedulable-pods-duration=1m"),
    ),
    "other memory and other scrapers": (
        *("--plugins=quiet.py", "--memory-request=512Mi", "--memory-limit=2Gi", "--probes-from=10.0.0.0/16"),
        *("--metrics-from=obs/app.kubernetes.io/name=prometheus", "--metrics-from=other"),
    ),
    "no scrapers": ("--plugins=quiet.py", "--metrics-from="),
    "controllers": ("--plugins=quiet.py", "--controllers"),
    "no policy": ("--plugins=quiet.py", "--no-network-policy"),
}


@pytest.mark.real
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_values_that_the_command_prints_make_the_chart_write_the_same(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quiet.py").write_text(PLUGIN, encoding="utf-8")
    Path("scheduler.yaml").write_text(CONFIG, encoding="utf-8")
    assert_chart_writes_what_the_command_writes(*options)


@pytest.mark.real
def test_a_configuration_with_credentials_is_a_secret_in_the_chart_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quiet.py").write_text(PLUGIN, encoding="utf-8")
    with_password = CONFIG + "\nextenders: [{urlPrefix: 'http://me:secret@extender/ext', filterVerb: filter}]\n"
    Path("scheduler.yaml").write_text(with_password, encoding="utf-8")
    written = assert_chart_writes_what_the_command_writes("--plugins=quiet.py")
    assert "Secret" in {kind for kind, _ in written}


def assert_chart_writes_what_the_command_writes(*options: str) -> dict[tuple[str, str], Any]:
    Path("values.yaml").write_text(printed("--config=scheduler.yaml", "--helm-values", *options), encoding="utf-8")
    written = documents(printed("--config=scheduler.yaml", *options))
    assert rendered("--values=values.yaml") == written
    return written


@pytest.mark.real
def test_helm_lint_passes():
    done = subprocess.run([helm(), "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def notes(folder: Path, *flags: str) -> str:
    """What `helm install` prints, which `helm template` leaves out: rendered as a template of another name."""
    chart = folder / "chart"
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text(encoding="utf-8")
    (chart / "templates" / "_notes.tpl").write_text(f'{{{{- define "notes" }}}}{text}{{{{ end }}}}', encoding="utf-8")
    (chart / "templates" / "notes.yaml").write_text('notes: {{ include "notes" . | quote }}\n', encoding="utf-8")
    shown_alone = "--show-only=templates/notes.yaml"
    done = subprocess.run(
        [helm(), "template", "release", str(chart), f"--namespace={NAMESPACE}", shown_alone, *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown: str = yaml.safe_load(done.stdout)["notes"]
    return shown


@pytest.mark.real
def test_the_notes_name_the_scheduler_and_commands_to_try_it(tmp_path):
    shown = notes(tmp_path)
    assert shown.lstrip().startswith("Mooring schedules pods with schedulerName mooring, and leaves all others alone.")
    for command in (
        "kubectl rollout status -n mooring-system deployment/mooring",
        """kubectl run try -n default --image=nginx --overrides='{"spec": {"schedulerName": "mooring"}}'""",
        "kubectl exec -n mooring-system deployment/mooring -- mooring explain default/try",
        "mooring doctor --config FILE --as system:serviceaccount:mooring-system:mooring",
    ):
        assert f"  {command}\n" in f"{shown}\n"


PROFILES = "profiles: [{schedulerName: packing}, {schedulerName: spreading}, {}]"


@pytest.mark.real
def test_the_notes_name_all_profiles_and_the_release(tmp_path):
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({"config": PROFILES, "name": ""}), encoding="utf-8")
    shown = notes(tmp_path, f"--values={tmp_path}/values.yaml")
    assert "schedulerName packing or spreading or default-scheduler" in shown
    assert "deployment/release" in shown


@pytest.mark.real
def test_the_notes_of_a_shadow_suggest_no_pod(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scheduler.yaml").write_text(CONFIG, encoding="utf-8")
    Path("quiet.py").write_text(PLUGIN, encoding="utf-8")
    options = ("--config=scheduler.yaml", "--plugins=quiet.py", "--as=shadow", "--helm-values")
    Path("values.yaml").write_text(printed(*options), encoding="utf-8")
    shown = notes(tmp_path, "--values=values.yaml")
    assert "beside their scheduler, and writes nothing" in shown
    assert "kubectl run" not in shown
