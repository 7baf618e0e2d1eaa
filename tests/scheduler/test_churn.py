"""Whatever happens, no pod is lost or bound twice, no node overcommitted, nothing left behind.

For longer runs: CHURN_SEEDS=1-200 CHURN_COUNT=2000.
"""

import os

import pytest
from tests.scheduler.churn import churn


def seeds() -> range:
    first, _, last = os.environ.get("CHURN_SEEDS", "1-2").partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("seed", seeds())
async def test_whatever_happens_nothing_is_lost(server, seed):
    await churn(server, seed=seed, count=int(os.environ.get("CHURN_COUNT", "400")))
