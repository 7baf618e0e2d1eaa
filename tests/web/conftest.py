from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.web.pages import Page, mirrored, served

from mooring.web.mirror import Mirror


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with mirrored() as mirror:
        yield mirror


@pytest.fixture
async def page(mirror: Mirror) -> AsyncIterator[Page]:
    async with served(mirror) as page:
        yield page
