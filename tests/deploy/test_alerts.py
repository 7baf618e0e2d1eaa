"""The alerting rules: Prometheus takes them, each fires when it should and only then, about what we serve."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from tests.cli.programs import private_home
from tests.deploy.alert_cases import CASES, Case
from tests.real_apiserver.control_plane import debian_program
from tests.scheduler.conftest import a_live_scheduler
from tests.test_documents import anchors

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import SystemClock
from mooring.scheduler.metrics.series import Histogram, Series
from mooring.scheduler.reload.reloader import Reloader
from mooring.scheduler.reload.watched_files import WatchedFiles

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations.md"
RULES = ROOT / "deploy" / "alerts" / "mooring.yaml"
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}

BY_PROMETHEUS = frozenset({"up"})
GIVEN_BY_PROMETHEUS = frozenset({"job", "instance"})
SECONDS = 60


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedApiServer]:
    running = EmbeddedApiServer()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture(autouse=True)
def private_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with private_home() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield


@pytest.fixture(scope="module")
def promtool() -> str:
    return shutil.which("promtool") or str(debian_program("prometheus").with_name("promtool"))


def output_of(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.real
def test_prometheus_takes_the_rules(promtool):
    assert f"SUCCESS: {len(ALERTS)} rules found" in output_of(promtool, "check", "rules", RULES)


@pytest.mark.real
def test_each_alert_fires_when_it_should_and_not_otherwise(promtool, tmp_path):
    file = tmp_path / "cases.yaml"
    tests = [_unit_test(name, case) for name, case in CASES.items()]
    document = {"rule_files": [os.fspath(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(document), encoding="utf-8")
    output_of(promtool, "test", "rules", file)


def _unit_test(name: str, case: Case) -> dict[str, Any]:
    """Only the alerts are compared: the texts of their annotations need not be repeated here."""
    firing = {"alertname": case.alert, "alertstate": "firing", **(case.fires or {})}
    if case.fires is not None:
        firing["severity"] = ALERTS[case.alert]["labels"]["severity"]
    shown = ", ".join(f'{label}="{value}"' for label, value in firing.items())
    expected = [{"labels": f"ALERTS{{{shown}}}", "value": 1}] if case.fires is not None else []
    expression = f'ALERTS{{alertname="{case.alert}", alertstate="firing"}}'
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": expression, "eval_time": case.after, "exp_samples": expected}],
    }


def test_each_alert_is_seen_to_fire_and_to_be_quiet():
    assert {case.alert for case in CASES.values() if case.fires is not None} == set(ALERTS)
    assert {case.alert for case in CASES.values() if case.fires is None} == set(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_names_what_is_wrong_and_where_to_read_on(alert):
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    notes: dict[str, str] = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook"}
    page, _, anchor = notes["runbook"].partition("#")
    assert anchor in anchors(ROOT / page)


def test_the_page_lists_each_alert_with_its_severity():
    listed: dict[str, str] = {}
    for names, severity in re.findall(
        r"^\| (`Mooring.*?`) \| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    ):
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", names), severity)
    assert listed == {alert: rule["labels"]["severity"] for alert, rule in ALERTS.items()}


@pytest.mark.real
def test_prometheus_takes_the_scrape_job_of_the_page(promtool, tmp_path):
    (job,) = [
        block
        for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if "scrape_configs" in block
    ]
    (tmp_path / "token").touch()
    (tmp_path / RULES.name).write_bytes(RULES.read_bytes())
    document = yaml.safe_load(job)
    (mooring,) = document["scrape_configs"]
    mooring["authorization"]["credentials_file"] = "token"
    # Debian builds Prometheus without it.
    assert mooring.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": ["mooring-system"]}}]
    mooring["static_configs"] = [{"targets": ["localhost:10259"]}]
    file = tmp_path / "prometheus.yml"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert "valid prometheus config file" in output_of(promtool, "check", "config", file)


async def test_the_alerts_are_about_metrics_and_labels_that_a_scheduler_serves(server: EmbeddedApiServer):
    async with a_live_scheduler(server) as live:
        metrics = live.scheduler.metrics
        metrics.leads("mooring", True)
        Reloader(live.scheduler, cast(Any, None), WatchedFiles(None), SystemClock())
        served = dict(_served(metrics.registry))
    unknown = {name for rule in ALERTS.values() for name in _metrics_in(rule["expr"])} - set(served) - BY_PROMETHEUS
    assert unknown == set()
    for case in CASES.values():
        for series in case.series:
            name, _, labels = series.partition("{")
            if name not in BY_PROMETHEUS:
                assert set(re.findall(r"(\w+)=", labels)) - GIVEN_BY_PROMETHEUS == served[name], series


def _served(registry: CollectorRegistry) -> Iterator[tuple[str, set[str]]]:
    """Every series that there can be, whether anything was counted or not → its labels."""
    for family in registry.collect():
        yield from ((sample.name, set(sample.labels)) for sample in family.samples)
    for name, collector in registry._names_to_collectors.items():
        if isinstance(collector, Series):
            yield collector.name, set(collector.labels)
            if isinstance(collector, Histogram):
                yield f"{collector.name}_bucket", {*collector.labels, "le"}
        elif isinstance(collector, MetricWrapperBase):
            yield name, set(collector._labelnames)


def _metrics_in(expression: str) -> set[str]:
    """The names in it that are no labels, functions or words of the language."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|on|ignoring|without) \([^)]*\)', " ", expression)
    return set(re.findall(r"\b[a-z_]\w*\b(?!\s*\()", bare)) - {"unless", "and", "or", "sum", "max", "min"}


def test_names_are_found_in_an_expression():
    assert _metrics_in('sum by (job) (rate(a_total{b="c"}[5m])) / max(d) > 0.05 unless on (e) f{g=~"5.."}') == {
        "a_total",
        "d",
        "f",
    }
