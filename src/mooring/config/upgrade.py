"""Old versions of the configuration, brought to v1 without changing what is decided."""

from __future__ import annotations

from mooring.config.plugin_args import GROUP
from mooring.config.problems import Problems
from mooring.config.tree import Tree
from mooring.framework.registry import Registry


def upgrade(tree: Tree, version: str, registry: Registry, problems: Problems) -> None:
    """Change the tree of an old version into one of v1."""
    tree.fields["apiVersion"].value = f"{GROUP}/v1"
