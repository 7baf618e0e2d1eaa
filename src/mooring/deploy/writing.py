"""Manifests as text: fields in the order given, texts of several lines as lines, and the components that need a rule
as a comment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from mooring.base.documents import readable_style, resolved
from mooring.base.visible import visible_yaml
from mooring.deploy.rules import Rule

Document = dict[str, Any]
_WIDTH = 116


class _Dumper(yaml.SafeDumper):
    """Writes lists as people write manifests: not indented. Nothing is written as an alias of something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # Quoted where YAML 1.1 or 1.2 would read something else than a text; the empty one is quoted in any case.
    is_plain = not text or (resolved(text) == text and isinstance(resolved(text), str))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=readable_style(text, is_plain=is_plain))


_Dumper.add_representer(str, _represent_text)


def _represent_rule(dumper: yaml.SafeDumper, rule: Rule) -> yaml.Node:
    return dumper.represent_dict(rule.document())


_Dumper.add_representer(Rule, _represent_rule)


def text_of(documents: Iterable[Document]) -> str:
    """Several documents, one after the other."""
    return "---\n".join(_text(document) for document in documents)


def _text(document: Document) -> str:
    if not document.get("rules"):
        return dump(document)
    others = {field: value for field, value in document.items() if field != "rules"}
    return dump(others) + "rules:\n" + "".join(_commented(rule) for rule in document["rules"])


def _commented(rule: Rule) -> str:
    return f"# {', '.join(rule.needed_by)}\n{dump([rule], compact=True)}"


def dump(value: Any, *, compact: bool = False) -> str:
    """One document. `compact`: lists of plain values in a line."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None if compact else False,
        allow_unicode=True,
        width=_WIDTH,
    )
    return visible_yaml(text)


def plain(document: Any) -> Any:
    """The same with nothing but what JSON knows."""
    if isinstance(document, Rule):
        return document.document()
    if isinstance(document, dict):
        return {field: plain(value) for field, value in document.items()}
    if isinstance(document, list | tuple):
        return [plain(value) for value in document]
    return document
