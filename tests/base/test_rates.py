"""Rate limits by client address."""

from __future__ import annotations

import pytest

from mooring.base import rates
from mooring.base.clock import ManualClock
from mooring.base.rates import Rates, client_key


def test_a_burst_and_then_a_rate():
    clock = ManualClock()
    limit = Rates(clock.monotonic, per_second=2, burst=3)
    assert [limit.take("a") for _ in range(4)] == [True, True, True, False]
    clock.advance(0.5)
    assert [limit.take("a") for _ in range(2)] == [True, False]
    clock.advance(60)
    assert [limit.take("a") for _ in range(4)] == [True, True, True, False]


def test_clients_do_not_share():
    limit = Rates(ManualClock().monotonic, per_second=1, burst=1)
    assert [limit.take("a"), limit.take("a"), limit.take("b")] == [True, False, True]


def test_the_number_of_clients_is_bounded(monkeypatch):
    monkeypatch.setattr(rates, "MOST_KEYS", 2)
    limit = Rates(ManualClock().monotonic, per_second=1, burst=1)
    for client in "abc":
        assert limit.take(client)
    assert len(limit._buckets) == 2
    assert [limit.take("c"), limit.take("b")] == [False, False]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("/run/a.sock", "/run/a.sock"),
    ],
)
def test_a_host_with_many_addresses_is_one_client(address, key):
    assert client_key(address) == key
