"""Tests of the page's modules that need Node.js. They carry the marker `real`; without Node.js they are skipped."""

from collections.abc import Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is collected here; the hook is handed the tests of every folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.real)
