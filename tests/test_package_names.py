"""No text of ours makes an installer fetch a package of another project.

On the public package index `mooring` is another project, and `mooring-conformance` is not registered: a command that
names either fetches code of unknown origin. What a text may name is a path of this repository (`.[simulation]`,
`./conformance`), or the libraries themselves.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NOT_OURS = {"mooring", "mooring-conformance", "mooring-python", "kubectl-mooring"}
INSTALLER = re.compile(
    r"(?<![\w./-])(?:pip[\d.]* .*?(?:install|download|wheel)|pipx (?:run|install|inject|runpip)|uvx"
    r"|uv (?:pip install|tool install|tool run|run|add))(?![\w/-])(?P<rest>[^`;&|\n]*)"
)
EXTRA = re.compile(r"(?<![\w./-])mooring(?:-conformance)?\[[a-z]")
QUOTES = "'\"`()<>,.:!?“”"
FOLDERS = ("src", "docs", "examples", "conformance", "deploy", "scripts", "launcher", ".github", ".ci")
FILES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASE.md", "SECURITY.md", "Makefile", "pyproject.toml")


def fetched(text: str) -> list[str]:
    """What of a text would fetch one of the names from an index."""
    joined = re.sub(r"\\\n\s*", " ", text)
    commands = [found.group().strip() for found in INSTALLER.finditer(joined) if _names_one(found["rest"])]
    return commands + [joined[found.start() :].split("\n")[0][:60] for found in EXTRA.finditer(joined)]


def _names_one(words: str) -> bool:
    for word in words.split():
        name = re.sub(r"^--[\w-]+=", "", word.strip(QUOTES))
        try:
            requirement = Requirement(re.sub(r"\"?\$\{?\w.*", "0", name))
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) in NOT_OURS and requirement.url is None:
            return True
    return False


@pytest.mark.parametrize(
    "text",
    [
        "pip install mooring",
        "python3 -m pip install mooring >&2",
        "`pip install --upgrade 'mooring[simulation]'` adds it",
        "pip install 'mooring[conformance]==0.1.0'",
        "run `pip install \\\n    Mooring_Conformance`",
        'exec uvx --from mooring=="${MOORING_VERSION:-@VERSION@}" mooring "$@"',
        "pipx run --spec mooring==1 mooring explain",
        "pipx install mooring",
        "uv tool install --from=mooring mooring",
        "uv pip install polars mooring",
        "in the extra `mooring[simulation]`",
    ],
)
def test_what_would_fetch_the_name_is_found(text):
    assert fetched(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install polars cloudpickle",
        "pip install '.[simulation]' scipy",
        "pip install ./mooring ./mooring/conformance",
        "pip install './mooring[simulation]'",
        "pipx install . && mooring demo",
        "`pip install pytest`, which mooring needs",
        'pip --python "$home/bin/python" install --no-index "$work"/wheels/mooring-*.whl',
        "uv makes the lock of mooring",
        'mooring["static_configs"]',
    ],
)
def test_what_names_a_library_or_a_path_is_not(text):
    assert not fetched(text)


def texts() -> list[Path]:
    found = [ROOT / name for name in FILES]
    found += [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if "__pycache__" not in file.parts]
    files = [file for file in found if file.is_file() and b"\0" not in file.read_bytes()[:8000]]
    assert len(files) > 500
    return files


def test_no_text_names_a_command_that_fetches_a_package_of_another_project():
    found = {
        file.relative_to(ROOT).as_posix(): commands
        for file in texts()
        if (commands := fetched(file.read_text(encoding="utf-8", errors="replace")))
    }
    assert not found, "name the libraries, or the checkout: pip install '.[simulation]'"


@pytest.mark.parametrize("file", ["pyproject.toml", "conformance/pyproject.toml"])
def test_the_metadata_of_our_packages_requires_neither_name(file):
    """pip would look an unmet requirement up in the index, whatever the checkout holds."""
    project = tomllib.loads((ROOT / file).read_text(encoding="utf-8"))
    groups = [project["project"].get("dependencies", []), *project["project"].get("optional-dependencies", {}).values()]
    groups += [project["build-system"]["requires"], *project.get("dependency-groups", {}).values()]
    required = {
        canonicalize_name(Requirement(each).name) for group in groups for each in group if isinstance(each, str)
    }
    assert not required & NOT_OURS
