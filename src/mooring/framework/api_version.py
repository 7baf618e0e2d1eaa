"""The version of the plugin API: what it is now, and whether a plugin is compatible with it.

A plugin that needs something newer than the oldest 1.x declares it: `requires_api = (1, 2)`. The major number changes
when plugins that worked must be changed, the minor one when there is more than before. docs/plugin-api.md has the
policy.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mooring.base.errors import OperatorMistake, Problem

if TYPE_CHECKING:
    from mooring.framework.plugin import Plugin

API_VERSION = (1, 1)
FIELD = "requires_api"


def check_api_version(cls: type[Plugin], source: str) -> None:
    """Refuse a plugin that needs another version than this."""
    required: Any = cls.requires_api
    if not _is_version(required):
        problem = Problem(f"{cls.name}.{FIELD}", f"must be two whole numbers like {API_VERSION}, got {required!r}")
        raise OperatorMistake(f"{source}: plugin {cls.name} does not keep the contract.", [problem])
    if not suffices(required):
        raise needs_another(source, cls.name, required)


def needs_another(source: str, plugin: str, required: tuple[int, int]) -> OperatorMistake:
    """What is wrong, and what to do, by which of the two is newer."""
    if required > API_VERSION:
        to_do = f"install a newer Mooring, or a version of {plugin} for plugin API {shown(API_VERSION)}"
    else:
        to_do = f"change {plugin} as described in docs/plugin-api.md, then set {FIELD} = {API_VERSION}"
    problem = f"needs plugin API {shown(required)}, and this Mooring has {shown(API_VERSION)}; {to_do}"
    return OperatorMistake(
        f"{source}: plugin {plugin} needs another Mooring.", [Problem(f"{source}: {plugin}.{FIELD}", problem)]
    )


def suffices(required: tuple[int, int]) -> bool:
    return required[0] == API_VERSION[0] and required[1] <= API_VERSION[1]


def shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def another_needed_by(source: str) -> OperatorMistake | None:
    """For a file that cannot be imported: perhaps because it wants names that only another version has.

    What it requires is read from its source, as there is no class to read it from.
    """
    try:
        tree = ast.parse(Path(source).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        required = _required_in(cls)
        if required is not None and not suffices(required):
            return needs_another(source, cls.name, required)
    return None


def _required_in(cls: ast.ClassDef) -> tuple[int, int] | None:
    for statement in cls.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="requires_api")], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id="requires_api"), value=ast.expr() as value):
                pass
            case _:
                continue
        try:
            found: Any = ast.literal_eval(value)
        except ValueError:
            return None
        return found if _is_version(found) else None
    return None


def _is_version(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(part) is int and part >= 0 for part in value)
