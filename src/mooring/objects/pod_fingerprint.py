"""The fingerprint of a set of pods, by which an agent and a scheduler find out that they know the same ones.

The hashes (xxHash64) of the pods, sorted, hashed again: `pfp0v001` and 16 digits.
"""

from __future__ import annotations

from collections.abc import Iterable

PREFIX = "pfp0v001"
ANNOTATION = "topology.node.k8s.io/fingerprint"
ATTRIBUTE = "nodeTopologyPodsFingerprint"
METHOD_ATTRIBUTE = "nodeTopologyPodsFingerprintMethod"
ONLY_EXCLUSIVE = "with-exclusive-resources"

_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Of pods by namespace and name."""
    hashes = sorted(xxhash64(name.encode(), xxhash64(namespace.encode())) for namespace, name in pods)
    return f"{PREFIX}{xxhash64(b''.join(each.to_bytes(8, 'little') for each in hashes)):016x}"


def xxhash64(data: bytes, seed: int = 0) -> int:
    """xxHash, 64 bits."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        turns = (1, 7, 12, 18)
        value = sum(_turned(lane, turn) for lane, turn in zip(lanes, turns, strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    value = (value + length) & _MASK
    while at + 8 <= length:
        value ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        value = (_turned(value, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        value ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        value = (_turned(value, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value ^= byte * _P5 & _MASK
        value = _turned(value, 11) * _P1 & _MASK
    value = (value ^ (value >> 33)) * _P2 & _MASK
    value = (value ^ (value >> 29)) * _P3 & _MASK
    return value ^ (value >> 32)


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK
