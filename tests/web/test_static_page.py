"""The files of the page: what a strict Content-Security-Policy and names from a cluster demand of them."""

import re
from pathlib import Path

import pytest

import mooring.web

STATIC = Path(mooring.web.__file__).parent / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
SHEETS = sorted(STATIC.glob("*.css"))
INDEX = (STATIC / "index.html").read_text(encoding="utf-8")
# Strings become markup or code by these; elements are made by dom.js, with text nodes.
MARKUP = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "createContextualFragment",
    "srcdoc",
)
CODE = ("eval(", "new Function", 'setTimeout("', 'setInterval("')
LONGEST = 500


def _name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_no_script_makes_markup_or_code_of_text(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert [word for word in (*MARKUP, *CODE) if word in text] == []


@pytest.mark.parametrize("file", [*SCRIPTS, *SHEETS, STATIC / "index.html"], ids=_name)
def test_no_file_names_an_address_of_the_internet(file: Path) -> None:
    addresses = re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z.]+[^\s\"')]*", file.read_text(encoding="utf-8"))
    assert [each for each in addresses if each != "http://www.w3.org/2000/svg"] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_every_import_is_a_file_of_the_page(script: Path) -> None:
    imported = re.findall(r"""(?:from|import\()\s*["']([^"']+)["']""", script.read_text(encoding="utf-8"))
    assert [each for each in imported if not each.startswith("./") or not (STATIC / each[2:]).is_file()] == []


def test_every_script_and_sheet_is_used() -> None:
    everything = INDEX + "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    assert [
        file.name
        for file in (*SCRIPTS, *SHEETS)
        if f'"{file.name}"' not in everything and f'"./{file.name}"' not in everything
    ] == []


def test_the_document_has_no_script_or_style_of_its_own() -> None:
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", INDEX) == []
    assert re.findall(r"<script(?![^>]*\ssrc=)", INDEX) == []


def test_the_document_works_for_screen_readers_and_phones() -> None:
    assert '<html lang="en">' in INDEX
    assert 'name="viewport"' in INDEX
    assert 'id="main"' in INDEX
    assert "<noscript>" in INDEX


@pytest.mark.parametrize("file", [*SCRIPTS], ids=_name)
def test_files_stay_short(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_both_colour_schemes_define_the_same_colours() -> None:
    text = (STATIC / "theme.css").read_text(encoding="utf-8")
    light, dark = (
        set(re.findall(r"(--[\w-]+):\s*(?=#|rgb)", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", text)[:2]
    )
    assert light == dark
