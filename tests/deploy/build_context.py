"""The folder in which the Dockerfile's RUN works: what COPY takes of the build context, less `.dockerignore`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = REPOSITORY / "deploy" / "Dockerfile"


def commands() -> list[str]:
    """The Dockerfile's instructions, each on one line."""
    found = re.findall(r"^[A-Z]+ (?:.*\\\n)*.*", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"\s*\\\n\s*", " ", command) for command in found]


def copies() -> list[tuple[list[str], str]]:
    """Sources and target of each COPY from the context."""
    words = [command.split()[1:] for command in commands() if command.startswith("COPY ")]
    return [(paths[:-1], paths[-1]) for paths in words if not paths[0].startswith("--from=")]


def copy_context(folder: Path) -> Path:
    """Do what the Dockerfile's COPY instructions do, with `folder` as WORKDIR. Links stay links."""
    folder.mkdir()
    kept = [path for path in _files() if not _is_ignored(path)]
    for sources, target in copies():
        for source in sources:
            _copy(source.rstrip("/"), folder / target, kept, into=target.endswith("/"))
    return folder


def _copy(source: str, target: Path, kept: list[str], *, into: bool) -> None:
    """A folder's content, or one file: into a folder if the target ends with a slash."""
    found = [path for path in kept if path == source or path.startswith(f"{source}/")]
    if not found:
        raise FileNotFoundError(f"COPY: the build context has no {source}; see .dockerignore")
    for path in found:
        name = path.removeprefix(source).lstrip("/") or (Path(source).name if into else "")
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / path, target / name, follow_symlinks=False)


def _files() -> Iterator[str]:
    for place, folders, files in os.walk(REPOSITORY):
        folders[:] = [name for name in folders if name not in {".git", ".venv", "build", "__pycache__"}]
        for name in files:
            yield (Path(place) / name).relative_to(REPOSITORY).as_posix()


def _is_ignored(path: str) -> bool:
    """Whether the last pattern that matches the path, or a folder above it, excludes it."""
    parts = path.split("/")
    names = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    ignored = False
    for pattern, excepts in _patterns():
        if any(pattern.fullmatch(name) for name in names):
            ignored = not excepts
    return ignored


def _patterns() -> list[tuple[re.Pattern[str], bool]]:
    """`*` matches within a name, `**` any number of folders; `!` makes an exception."""
    lines = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    texts = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return [(_pattern(text.lstrip("!").strip("/")), text.startswith("!")) for text in texts]


def _pattern(text: str) -> re.Pattern[str]:
    expressions = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", text)
    return re.compile("".join(expressions.get(piece, re.escape(piece)) for piece in pieces))
