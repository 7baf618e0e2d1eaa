"""Changing one profile of a configuration tree: its plugin lists and its arguments.

The file is not validated yet: a field of a wrong type is left alone, and reported when the result is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.base.documents import Tree, made

EVERY = "*"


class ProfileEdit:
    """One profile, with the edits that conversion needs."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @property
    def plugins(self) -> Tree:
        return self.tree.get("plugins") or Tree({}, self.tree.below("plugins"), self.tree.line)

    def listed(self, point: str, which: str) -> list[Tree]:
        """The entries that are `enabled` or `disabled` at a point."""
        at = self.plugins.get(point)
        found = at.get(which) if at else None
        return found.items if found else []

    def points(self) -> list[str]:
        return list(self.plugins.fields)

    def find(self, point: str, which: str, name: str) -> Tree | None:
        return next((entry for entry in self.listed(point, which) if _name(entry) == name), None)

    def is_disabled(self, point: str, name: str) -> bool:
        return any(_name(entry) in (name, EVERY) for entry in self.listed(point, "disabled"))

    def remove(self, point: str, which: str, name: str) -> None:
        entries = self.listed(point, which)
        entries[:] = [entry for entry in entries if _name(entry) != name]

    def add(self, point: str, which: str, entry: Any, like: Tree) -> None:
        at = self._below(self.tree, "plugins", {}, like)
        at = self._below(at, point, {}, like)
        at = self._below(at, which, [], like)
        at.items.append(made(entry, like))

    def replace(self, point: str, old: Tree, new: dict[str, Any]) -> None:
        """Put another plugin in the place of an enabled one."""
        entries = self.listed(point, "enabled")
        entries[entries.index(old)] = made(new, old)

    def all_args(self) -> Iterator[tuple[str, Tree]]:
        for entry in self._configs():
            args = entry.get("args")
            if args is not None:
                yield _name(entry), args

    def args(self, plugin: str) -> Tree | None:
        return next((args for name, args in self.all_args() if name == plugin), None)

    def drop_args(self, plugin: str) -> None:
        entries = self._configs()
        entries[:] = [entry for entry in entries if _name(entry) != plugin]

    def set_args(self, plugin: str, field: str, value: Any, like: Tree) -> None:
        """Give one argument of a plugin, beside those it has."""
        entry = next((entry for entry in self._configs() if _name(entry) == plugin), None)
        if entry is None:
            entry = made({"name": plugin, "args": {}}, like)
            self._below(self.tree, "pluginConfig", [], like).items.append(entry)
        args = self._below(entry, "args", {}, like)
        if isinstance(args.value, dict):
            args.value[field] = made(value, like)

    def _configs(self) -> list[Tree]:
        found = self.tree.get("pluginConfig")
        return found.items if found else []

    @staticmethod
    def _below(tree: Tree, name: str, empty: Any, like: Tree) -> Tree:
        found = tree.get(name)
        if found is None:
            found = Tree(made(empty, like).value, tree.below(name), like.line)
            tree.fields[name] = found
        return found


def _name(entry: Tree) -> str:
    name = entry.get("name")
    return name.value if name is not None and isinstance(name.value, str) else ""
