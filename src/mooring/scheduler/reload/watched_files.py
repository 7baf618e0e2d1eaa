"""Which files are watched, and whether they have changed: by their content, not by file system metadata.

A mounted ConfigMap changes by a symbolic link that is swapped, an editor writes another file under the same name, a
restore keeps the old time: the contents are right in each of these cases. The files are few and small, so reading them
costs less than knowing when not to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from mooring.base.errors import OperatorMistake
from mooring.framework.plugin_files import is_module_path, with_helpers


class WatchedFiles:
    """The configuration file and, where they may be reloaded, the plugin files."""

    def __init__(self, config_file: str | None, plugins: Sequence[str] = ()) -> None:
        self._config_file = config_file
        self._plugins = [path for path in plugins if not is_module_path(path)]

    def digest(self) -> str:
        """A digest that changes when any of the files changes, appears or disappears."""
        digest = hashlib.sha256()
        for path, content in self._contents():
            # With their lengths, so that no two different sets of files look alike.
            for part in (str(path).encode(), content):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def _contents(self) -> Iterator[tuple[Path | str, bytes]]:
        if self._config_file is not None:
            yield self._config_file, _content(Path(self._config_file))
        for path in self._plugins:
            try:
                files = with_helpers(path)
            except (OperatorMistake, OSError):
                yield path, b"gone"
                continue
            for file in files:
                yield file, _content(file)


def _content(file: Path) -> bytes:
    try:
        return b"+" + file.read_bytes()
    except OSError as error:
        return b"-" + type(error).__name__.encode()
