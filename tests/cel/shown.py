"""CEL values as the recorded tables write them, and the variables of the recorded expressions."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from mooring.cel import types
from mooring.cel.types import Type
from mooring.cel.values import Duration, Optional, Timestamp, Uint, key_of, keys_of

VARIABLES: dict[str, Type] = {
    "i": types.INT,
    "u": types.UINT,
    "s": types.STRING,
    "d": types.DOUBLE,
    "b": types.BOOL,
    "dy": types.DYN,
    "li": types.list_of(types.INT),
    "ls": types.list_of(types.STRING),
    "mss": types.map_of(types.STRING, types.STRING),
    "msd": types.map_of(types.STRING, types.DYN),
    "by": types.BYTES,
}
VALUES: dict[str, Any] = {
    "i": 7,
    "u": Uint(9),
    "s": "hello",
    "d": 2.5,
    "b": True,
    "dy": {"a": 1, "l": [1, "two", 3.5, True, None], "m": {"k": "v"}},
    "li": [3, 1, 2],
    "ls": ["b", "a", "c"],
    "mss": {"k": "v", "k2": "v2"},
    "msd": {"n": 4, "s": "x", "t": True},
    "by": b"abc",
}


def shown(value: Any) -> str:
    """Every type looks different, and doubles to the last bit."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case Uint():
            return f"{int(value)}u"
        case int():
            return str(value)
        case float():
            bits: int = struct.unpack(">Q", struct.pack(">d", value))[0]
            return "double(nan)" if math.isnan(value) else f"double({bits:x})"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"b:{value.hex()}"
        case Duration():
            return f"duration({value.nanoseconds})"
        case Timestamp():
            return "timestamp({}.{:09d})".format(*divmod(value.nanoseconds, 10**9))
        case Type():
            return f"type({value.name})"
        case Optional():
            return f"optional({shown(value.value)})" if value.present else "optional.none"
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            entries = sorted(f"{shown(key)}: {shown(value[key_of(key)])}" for key in keys_of(value))
            return "{" + ", ".join(entries) + "}"
    return f"{value.cel_type.name}({value})"
