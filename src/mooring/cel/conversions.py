"""`int(x)`, `string(x)` and the other conversions between types, and the texts of numbers as Go writes them."""

from __future__ import annotations

import re
from typing import Any

from mooring.cel.errors import CelError
from mooring.cel.operators import INT_OVERFLOW, UINT_OVERFLOW, int64, timestamp, uint64
from mooring.cel.times import duration_text, parsed_duration, parsed_timestamp, timestamp_text
from mooring.cel.values import INT_LEAST, INT_MOST, UINT_MOST, Duration, Timestamp, Uint, type_name

_INT = re.compile(r"[+-]?[0-9]+")
_UINT = re.compile(r"[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]++\.?[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]+")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _impossible(value: Any, wanted: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def double_text(value: float) -> str:
    """Go's %g: the shortest text, with an exponent below -4 and from 6 on."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    digits, exponent = _digits(value)
    sign = "-" if value < 0 or str(value)[0] == "-" else ""
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def _digits(value: float) -> tuple[str, int]:
    """The shortest digits that mean the value, and the power of ten of the first."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits) if digits else 0
    power = len(whole) - 1 - leading + int(exponent or 0)
    return (digits.rstrip("0") or "0"), (power if digits else 0)


def to_int(value: Any) -> int:
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is Uint:
        return int64(int(value))
    if kind is float:
        if not -(2.0**63) < value < 2.0**63:
            raise CelError(INT_OVERFLOW)
        return int(value)
    if kind is str and _INT.fullmatch(value) and len(value) < 30 and INT_LEAST <= int(value) <= INT_MOST:
        return int(value)
    if kind is Timestamp:
        return int(value.nanoseconds // 10**9)
    if kind is Duration:
        return int(value.nanoseconds)
    raise _impossible(value, "int")


def to_uint(value: Any) -> Uint:
    kind = type(value)
    if kind is Uint:
        return Uint(value)
    if kind is int:
        return uint64(value)
    if kind is float:
        if not 0 <= value < 2.0**64:
            raise CelError(UINT_OVERFLOW)
        return Uint(int(value))
    if kind is str and _UINT.fullmatch(value) and len(value) < 30 and int(value) <= UINT_MOST:
        return Uint(value)
    raise _impossible(value, "uint")


def to_double(value: Any) -> float:
    kind = type(value)
    if kind in (int, Uint, float):
        return float(value)
    if kind is str:
        value = re.sub(r"(?<=[0-9])_(?=[0-9])", "", value)
    if kind is str and _FLOAT.fullmatch(value):
        number = float(value)
        if number not in (float("inf"), float("-inf")) or "inf" in value.lower():
            return number
    elif kind is str and _HEX_FLOAT.fullmatch(value):
        return float.fromhex(value)
    raise _impossible(value, "double")


def to_string(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind in (int, Uint):
        return str(int(value))
    if kind is float:
        return double_text(value)
    if kind is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is Duration:
        return duration_text(value)
    raise _impossible(value, "string")


def to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise _impossible(value, "bytes")


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (value in _TRUE or value in _FALSE):
        return value in _TRUE
    raise _impossible(value, "bool")


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if type(value) is int:
        return Duration(value)
    if isinstance(value, str) and (parsed := parsed_duration(value)) is not None:
        return parsed
    raise _impossible(value, "google.protobuf.Duration")


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        return timestamp(value * 10**9)
    if isinstance(value, str) and (parsed := parsed_timestamp(value)) is not None:
        return timestamp(parsed.nanoseconds, parsed.zone_seconds)
    raise _impossible(value, "google.protobuf.Timestamp")
