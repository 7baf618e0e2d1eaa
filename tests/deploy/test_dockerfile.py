"""The Dockerfile does what the tested script does, and what manifests rely on."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.deploy.build_context import DOCKERFILE, REPOSITORY, commands, copy_context

from mooring import __version__
from mooring.deploy.manifests import PORT, USER_ID

TEXT = DOCKERFILE.read_text(encoding="utf-8")
COMMANDS = commands()


def the(instruction: str) -> str:
    (found,) = [command.partition(" ")[2] for command in COMMANDS if command.startswith(f"{instruction} ")]
    return found


def test_all_the_work_is_done_by_the_script():
    assert the("RUN") == "scripts/build-root /image"


def test_its_user_is_a_number_and_not_root():
    assert the("USER") == f"{USER_ID}:{USER_ID}"


def test_there_is_no_entrypoint_so_that_a_manifest_names_the_program():
    assert not [command for command in COMMANDS if command.startswith("ENTRYPOINT")]
    assert json.loads(the("CMD")) == ["mooring", "run"]


def test_its_health_check_is_mooring_health():
    assert the("HEALTHCHECK").endswith('CMD ["mooring", "health"]')
    assert the("EXPOSE") == str(PORT)


def test_both_stages_have_the_same_python():
    assert [command for command in COMMANDS if command.startswith("FROM")] == [
        "FROM ${PYTHON} AS build",
        "FROM ${PYTHON}",
    ]


DIGEST = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")


def test_every_base_has_a_digest():
    """A tag can be moved to other content, and the build would take it."""
    made = {".venv", "build"}
    files = [path for path in REPOSITORY.rglob("*Dockerfile*") if not made & {*path.parts} and path.is_file()]
    assert files == [REPOSITORY / "deploy" / "Dockerfile"]
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)", TEXT, re.MULTILINE))
    bases = [command.split()[1] for command in COMMANDS if command.startswith("FROM ")]
    for base in bases:
        name = re.fullmatch(r"\$\{(\w+)\}", base)
        assert DIGEST.fullmatch(defaults[name[1]] if name else base)


def test_the_bot_that_proposes_updates_knows_the_base_and_the_lock():
    config = json.loads((REPOSITORY / "renovate.json").read_text(encoding="utf-8"))
    tag = the("ARG").partition(":")[2].partition("@")[0]
    (allowed,) = [rule["allowedVersions"] for rule in config["packageRules"] if rule["matchManagers"] == ["dockerfile"]]
    assert re.search(allowed.strip("/"), tag)
    (locks,) = config["pip_requirements"]["managerFilePatterns"]
    files = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "requirements").glob("*.txt")]
    assert all(re.search(locks.strip("/"), file) for file in files)


def test_every_link_that_is_copied_leads_to_something_that_is_copied(tmp_path: Path):
    context = copy_context(tmp_path / "source")
    links = {path.relative_to(context).as_posix(): path.resolve() for path in context.rglob("*") if path.is_symlink()}
    outside = {
        path: str(target)
        for path, target in links.items()
        if not (target.exists() and target.is_relative_to(context.resolve()))
    }
    assert links
    assert outside == {}


def test_what_is_copied_is_all_of_mooring_and_nothing_that_was_compiled(tmp_path: Path):
    context = copy_context(tmp_path / "source")
    sources = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "src").rglob("*.py")}
    assert sources <= {path.relative_to(context) for path in context.rglob("*")}
    assert not list(context.rglob("__pycache__"))


def test_the_tag_in_its_comment_is_this_version():
    assert set(re.findall(r"mooring:([0-9.]+)", TEXT)) == {__version__}
