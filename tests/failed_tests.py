"""Writes which tests failed, with their logs, to the file that FAILED_TESTS names: `.ci/judge` decides by it.

Loaded by the root conftest. With pytest-xdist the reports of all workers arrive in the controller, so only it writes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FILE_VARIABLE = "FAILED_TESTS"


class FailedTests:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._logs: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            sections = [f"--- {title}\n{text}" for title, text in report.sections]
            self._logs.setdefault(report.nodeid, []).extend([f"--- {report.when}\n{report.longreprtext}", *sections])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._logs.setdefault(report.nodeid, []).append(f"--- collection\n{report.longreprtext}")

    def pytest_sessionfinish(self) -> None:
        failed = [{"test": test, "log": "\n".join(logs)} for test, logs in self._logs.items()]
        self._file.write_text(json.dumps(failed), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    file = os.environ.get(FILE_VARIABLE)
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(Path(file)), "failed-tests")
