"""What holds for every test: how hypothesis looks for counter-examples; and what many share: an API server.

Neither profile has a deadline: how long an example takes on a busy machine says nothing about the code.
"""

import gc
import os
import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import settings

from mooring.apiserver import EmbeddedApiServer

settings.register_profile("local", deadline=None)
# CI judges a change by the same examples each time; looking for new ones is for everybody's own machine.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))


@pytest.fixture(autouse=True)
def collecting_as_before() -> Iterator[None]:
    """What a command does to the garbage collector of its own process does not last beyond the test that called it."""
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.set_threshold(*before)
        gc.unfreeze()


@pytest.fixture
def private_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Schedulers of this test are not found by others, nor by the user's own `mooring explain`."""
    # Not tmp_path: a socket's path may have 108 bytes at most.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedApiServer]:
    server = EmbeddedApiServer()
    await server.start()
    yield server
    await server.stop()
