"""The vocabulary check: words of the private dialect become fewer, and stay so."""

from __future__ import annotations

import pytest
from tests.test_ci import script

words = script("scripts/check-words")

TABLE = {"told": {"write": "report", "src": 1, "tests": 0, "docs": 0}}


def a_tree(folder, text: str):
    (folder / "src").mkdir()
    (folder / "src" / "some.py").write_text(text)
    return folder


COUNTED = {
    "a word of a comment": ("# Nobody is told.", 1),
    "a part of an identifier": ("def on_told(toldAbout, TOLD): ...", 3),
    "another word that contains it": ("untold = retold = toldness", 0),
}


@pytest.mark.parametrize(("text", "found"), COUNTED.values(), ids=COUNTED.keys())
def test_words_are_counted(tmp_path, text, found):
    assert words.count("src", root=a_tree(tmp_path, text))["told"] == found


def test_a_real_use_is_not_counted(tmp_path):
    tree = a_tree(tmp_path, "library.told_you()\ntold = 1\n")
    real = {"real-uses": {"library.told_you": "a function of a library"}}
    assert words.check(TABLE | real, tree) == []
    text = 'told = { write = "report", src = 5 }\n\n[real-uses]\n"library.told_you" = "a function of a library"\n'
    assert words.lowered(text, tree) == text.replace("src = 5", "src = 1")


JUDGED = {
    "as many as allowed": ("told", []),
    "one more": ("told told", ['src: "told" occurs 2 times, 1 allowed; write report']),
    "one less": ("", ['src: "told" occurs 0 times, 1 allowed: run check-words --lower']),
}


@pytest.mark.parametrize(("text", "problems"), JUDGED.values(), ids=JUDGED.keys())
def test_more_and_fewer_than_allowed_are_reported(tmp_path, text, problems):
    assert words.check(TABLE, a_tree(tmp_path, text)) == problems


def test_numbers_are_lowered_and_never_raised(tmp_path):
    text = 'told = { write = "report", src = 5, tests = 0, docs = 0 }\nsaid = { write = "report", src = 0 }\n'
    lowered = words.lowered(text, a_tree(tmp_path, "told told said"))
    assert lowered == text.replace("src = 5", "src = 2")
