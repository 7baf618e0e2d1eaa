"""Chance with a seed, and quantities, times and other small values written in one of their notations."""

from __future__ import annotations

import datetime
import random
from typing import Any

Json = dict[str, Any]


class Dice(random.Random):
    """Chance that is the same for the same seed."""

    def chance(self, p: float) -> bool:
        return self.random() < p


GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10
EPOCH = 1735689600  # 2025-01-01T00:00:00Z


def cpu_quantity(dice: Dice, milli: int, odd: float = 0.5) -> str:
    """A CPU quantity of `milli` millicores in some notation."""
    forms = [f"{milli}m"]
    if milli % 1000 == 0:
        forms = [str(milli // 1000), str(milli // 1000), f"{milli}m", f"{milli // 1000}.0"]
        if milli:
            forms.append(f"{milli // 1000}e0")
    else:
        s = f"{milli / 1000:.3f}".rstrip("0")
        forms += [s, s]
        if milli % 100 == 0:
            forms.append(f"{milli // 100}e-1")
    if dice.random() > odd:
        return forms[0]
    return dice.choice(forms)


def bytes_quantity(dice: Dice, b: int, odd: float = 0.5) -> str:
    """A quantity of `b` bytes in some notation."""
    plain = [str(b)]
    best = None
    for suf, m in (("Ti", 1 << 40), ("Gi", GIB), ("Mi", MIB), ("Ki", KIB)):
        if b and b % m == 0:
            best = f"{b // m}{suf}"
            break
    forms = list(plain)
    for suf, m in (("Ki", KIB), ("Mi", MIB), ("Gi", GIB)):
        if b % m == 0:
            forms.append(f"{b // m}{suf}")
        elif b * 4 % m == 0:
            forms.append(f"{b / m:.2f}".rstrip("0") + suf)
    for suf, m in (("k", 10**3), ("M", 10**6), ("G", 10**9)):
        if b and b % m == 0:
            forms.append(f"{b // m}{suf}")
            forms.append(f"{b // m}e{len(str(m)) - 1}")
        elif b and b * 10 % m == 0:
            forms.append(f"{b * 10 // m}e{len(str(m)) - 2}")
    if b < (1 << 50):
        forms.append(f"{b * 1000}m")
    if dice.random() > odd:
        return best or plain[0]
    return dice.choice(forms)


def count_quantity(dice: Dice, n: int) -> str:
    return f"{n // 1000}k" if n and n % 1000 == 0 and dice.chance(0.5) else str(n)


def quantity(dice: Dice, name: str, v: int, odd: float = 0.5) -> str:
    if name == "cpu":
        return cpu_quantity(dice, v, odd)
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        return bytes_quantity(dice, v, odd)
    return count_quantity(dice, v)


def timestamp(sec: int) -> str:
    return datetime.datetime.fromtimestamp(EPOCH + sec, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
