"""The bounds themselves: a child that is too expensive fails its test instead of hanging it."""

from __future__ import annotations

import pytest
from tests.hostile.bounds import TooExpensive, bounded

HERE = "tests.hostile.test_bounds"


def add(left: int, right: int) -> int:
    return left + right


def spin() -> None:
    while True:
        pass


def hoard(mib: int) -> int:
    return len(bytearray(mib * 1024 * 1024))


def test_a_cheap_call_returns_its_result():
    assert bounded(f"{HERE}:add", 2, 3, cpu_seconds=30) == 5


def test_a_call_that_never_ends_fails():
    with pytest.raises(TooExpensive, match="more than 2 s of CPU time"):
        bounded(f"{HERE}:spin", cpu_seconds=2)


def test_a_call_that_takes_too_much_memory_fails():
    with pytest.raises(TooExpensive, match="MiB, more than 100"):
        bounded(f"{HERE}:hoard", 300, cpu_seconds=30, memory_mib=100)


def test_a_call_that_raises_fails_with_its_traceback():
    with pytest.raises(TooExpensive, match="unsupported operand"):
        bounded(f"{HERE}:add", 2, "three", cpu_seconds=30)


def test_what_the_parent_uses_does_not_count():
    held = bytearray(400 * 1024 * 1024)
    assert bounded(f"{HERE}:add", 2, 3, cpu_seconds=30, memory_mib=200) == 5
    del held
