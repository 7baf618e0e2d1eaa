"""Settings of every test: how hypothesis looks for counter-examples; and fixtures of many: an API server.

Neither profile has a deadline: the time that an example takes on a busy machine is no property of the code.
"""

import gc
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mooring.apiserver import EmbeddedApiServer
from mooring.base import log

pytest_plugins = ["tests.failed_tests"]

# Nor does either mind how long it takes to make them.
PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **PATIENT)
# CI judges a change by the same examples each time; new ones are searched for on developers' machines.
settings.register_profile("ci", **PATIENT, derandomize=True, print_blob=True)
# More of them, never the same: `make test-explore`.
settings.register_profile("explore", **PATIENT, max_examples=300, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))


@pytest.fixture(autouse=True)
def collecting_as_before() -> Iterator[None]:
    """What a command does to the garbage collector of its own process does not last beyond the test that called it."""
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.set_threshold(*before)
        gc.unfreeze()


@pytest.fixture(autouse=True)
def log_settings_as_before() -> Iterator[None]:
    """Flags of the log take effect when they are read, and the log is the whole process's."""
    settings = log.settings()
    before = vars(settings).copy()
    yield
    vars(settings).update(before)


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
