"""Health responds in the words that probes and people know from Kubernetes' own components."""

from __future__ import annotations

import pytest

from mooring.scheduler.serving.health import Health


def healthy() -> None:
    return None


def broken() -> str:
    return "the lease could not be renewed"


WELL = Health({"healthz": {}, "readyz": {"shutdown": healthy, "sync": healthy}})
UNHEALTHY = Health({"readyz": {"shutdown": healthy, "sync": broken}})


@pytest.mark.parametrize(
    ("health", "endpoint", "options", "is_well", "text"),
    [
        pytest.param(WELL, "readyz", {}, True, "ok", id="all well"),
        pytest.param(WELL, "healthz", {"verbose": True}, True, "[+]ping ok\nhealthz check passed\n", id="ping"),
        pytest.param(
            WELL,
            "readyz",
            {"verbose": True},
            True,
            "[+]shutdown ok\n[+]sync ok\nreadyz check passed\n",
            id="check by check",
        ),
        pytest.param(
            UNHEALTHY,
            "readyz",
            {},
            False,
            "[+]shutdown ok\n[-]sync failed: reason withheld\nreadyz check failed\n",
            id="the reason is for those who may read it",
        ),
        pytest.param(UNHEALTHY, "readyz", {"excluded": ["sync"]}, True, "ok", id="what is excluded does not count"),
        pytest.param(
            WELL,
            "readyz",
            {"excluded": ["sync", "moon"], "verbose": True},
            True,
            "[+]shutdown ok\n[+]sync excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "moon"\nreadyz check passed\n',
            id="an exclusion that excludes nothing",
        ),
    ],
)
def test_an_endpoint_responds(health, endpoint, options, is_well, text):
    response = health.run(endpoint, **options)
    assert (response.is_well, response.text) == (is_well, text)


def test_one_check_reports_what_is_wrong():
    response = UNHEALTHY.run_one("readyz", "sync")
    assert response is not None
    assert (response.is_well, response.text) == (False, "internal server error: the lease could not be renewed\n")
    assert UNHEALTHY.run_one("readyz", "moon") is None


def test_every_check_that_ran_is_counted():
    seen = []
    health = Health(UNHEALTHY.checks, observed=lambda *what: seen.append(what))
    health.run("readyz", excluded=["shutdown"])
    assert seen == [("readyz", "sync", False)]
