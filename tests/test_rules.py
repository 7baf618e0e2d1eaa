"""Every rule of docs/rules.md is named by a test that checks it, and no test names a rule that is not there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
RULES = re.findall(r"^\| ([\w.]+) \| ", (TESTS.parent / "docs" / "rules.md").read_text(), re.MULTILINE)
RANGE = re.compile(r"\bQ(\d+)–Q(\d+)\b")
NAME = re.compile(r"\b([QG]\d+|[34]\.\d(?:\.\d+|\.[a-z])?|Isolation)\b")


def docstrings() -> Iterator[tuple[str, str]]:
    """(where, docstring) for each test and each step of one."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (words := ast.get_docstring(node)):
                yield f"{path.relative_to(TESTS)}: {node.name}", words


def named() -> Iterator[tuple[str, str]]:
    """(rule, where) for each rule in the docstring of a test or of a step of one."""
    for where, words in docstrings():
        for rule in rules_in(words):
            yield rule, where


def rules_in(words: str) -> Iterator[str]:
    for first, last in RANGE.findall(words):
        yield from (f"Q{number}" for number in range(int(first), int(last) + 1))
    # Only where rules stand first: elsewhere 4.5 may be a number of seconds.
    head = re.match(rf"(?:(?:{NAME.pattern})(?:, |–)?)+", words)
    if head is not None:
        yield from NAME.findall(head.group())


def test_every_rule_is_named_by_a_test():
    found = {rule for rule, _ in named()}
    assert [rule for rule in RULES if rule not in ("rule", *found)] == []


def test_no_test_names_a_rule_that_is_not_there():
    assert [where for rule, where in named() if rule not in RULES] == []


def test_every_docstring_has_words_beside_the_numbers():
    bare = re.compile(rf"(?:(?:{NAME.pattern})(?:, |–)?)+\.?")
    assert [f"{where}: {words}" for where, words in docstrings() if bare.fullmatch(words)] == []


def test_each_rule_stands_there_once():
    numbered = [rule for rule in RULES if rule != "rule"]
    assert len(numbered) == len(set(numbered))
    for letter, count in (("Q", 50), ("G", 51)):
        expected = [f"{letter}{number}" for number in range(1, count + 1)]
        assert [rule for rule in numbered if rule.startswith(letter)] == expected
