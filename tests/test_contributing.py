"""The first things a contributor meets: CI and hooks run the project's own commands, the forms request what we need."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]


def steps(workflow: Path) -> list[dict[str, object]]:
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


def test_public_ci_runs_the_command_of_contributors():
    commands = [step["run"] for step in steps(ROOT / ".github/workflows/ci.yml") if "run" in step]
    assert commands == [".ci/run"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_can_only_read_and_ends(workflow):
    loaded = yaml.safe_load(workflow.read_text())
    assert loaded["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 90 for job in loaded["jobs"].values())


def test_every_hook_runs_a_locked_tool():
    hooks = [
        hook
        for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
        for hook in repository["hooks"]
    ]
    lint = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [
        hook["id"] for hook in hooks if " ".join(hook["entry"].split()[:2]).removesuffix(" --no-cache") not in lint
    ] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_requires_something(form):
    loaded = yaml.safe_load(form.read_text())
    assert loaded["name"]
    assert loaded["description"]
    assert any(field.get("validations", {}).get("required") for field in loaded["body"])


def test_the_layers_of_packages_are_drawn_as_they_are_checked():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    blocks = (ROOT / "CONTRIBUTING.md").read_text().split("```")[1::2]
    drawn = next(block for block in blocks if "__main__" in block)
    assert [line.split() for line in drawn.split("\n") if line] == [layer.split(" | ") for layer in layers]
