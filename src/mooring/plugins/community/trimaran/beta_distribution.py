"""The Beta distribution: with a given mean and deviation, and the probability of less than something."""

from __future__ import annotations

import math
import sys

_MOST_STEPS = 500
_PRECISION = 3e-16
_TINY = 1e-300


def beta_of(mean: float, deviation: float) -> tuple[float, float] | None:
    """The parameters of the distribution with this mean and deviation; None: there is none."""
    variance = deviation * deviation + mean * mean - mean * mean
    if not 0 <= mean <= 1 or variance < 0 or variance >= mean * (1 - mean) or variance == 0:
        return None
    size = max(mean * (1 - mean) / variance - 1, sys.float_info.min)
    return mean * size, (1 - mean) * size


def regularized_incomplete_beta(x: float, a: float, b: float) -> float:
    """The probability of at most x under the parameters a and b; 0 where it cannot be computed."""
    if a <= 0 or b <= 0 or not 0 <= x <= 1:
        return 0.0
    if x in (0.0, 1.0):
        return x
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(logarithm)
    if x < (a + 1) / (a + b + 2):
        probability = front * _fraction(x, a, b) / a
    else:
        probability = 1 - front * _fraction(1 - x, b, a) / b
    return probability if 0 <= probability <= 1 else 0.0


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete Beta function, by the method of Lentz."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    value = d
    for step in range(1, _MOST_STEPS):
        for term in (
            step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step)),
            -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1)),
        ):
            d, c = 1 + term * d, 1 + term / c
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            value *= d * c
        if abs(d * c - 1) < _PRECISION:
            break
    return value
