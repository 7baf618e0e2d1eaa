"""IP addresses and networks: `ip("10.0.0.1")`, `cidr("10.0.0.0/8").containsIP(...)`.

Text is read by the rules of Go's netip and refused in its words; Python's `ipaddress` does the arithmetic.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from mooring.cel import types
from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.text import quoted
from mooring.cel.types import BOOL, INT, STRING
from mooring.cel.values import Opaque

IP_TYPE, CIDR_TYPE = types.opaque("net.IP"), types.opaque("net.CIDR")


class IPAddress(Opaque):
    """An IP address."""

    __slots__ = ("value",)
    cel_type = IP_TYPE

    def __init__(self, value: IPv4Address | IPv6Address) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPAddress) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return str(self.value)


class Network(Opaque):
    """An address with the length of a prefix. Bits behind the prefix stay until it is masked."""

    __slots__ = ("address", "bits")
    cel_type = CIDR_TYPE

    def __init__(self, address: IPAddress, bits: int) -> None:
        self.address, self.bits = address, bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def prefix(self, of: IPAddress, bits: int | None = None) -> int:
        value = of.value
        return int(value) >> (value.max_prefixlen - (self.bits if bits is None else bits))

    def contains(self, address: IPAddress) -> bool:
        return address.value.version == self.address.value.version and self.prefix(address) == self.prefix(self.address)

    def masked(self) -> Network:
        value = self.address.value
        rest = value.max_prefixlen - self.bits
        return Network(IPAddress(type(value)(int(value) >> rest << rest)), self.bits)


class _Unreadable(ValueError):
    """Text that is no address, in netip's words."""


def _parsed(text: str) -> tuple[IPv4Address | IPv6Address, str]:
    """The address and its zone."""
    for character in text:
        if character == ".":
            return IPv4Address(_four(text, text)), ""
        if character == ":":
            return _six(text)
        if character == "%":
            raise _refused(text, "missing IPv6 address")
    raise _refused(text, "unable to parse IP")


def _refused(text: str, reason: str, at: str = "") -> _Unreadable:
    return _Unreadable(f"ParseAddr({quoted(text)}): {reason}" + (f" (at {quoted(at)})" if at else ""))


def _four(whole: str, text: str) -> bytes:
    fields: list[int] = []
    value, digits = 0, 0
    for position, character in enumerate(text):
        if character in "0123456789":
            if digits == 1 and value == 0:
                raise _refused(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                raise _refused(whole, "IPv4 field has value >255")
        elif character == ".":
            if position == 0 or position == len(text) - 1 or text[position - 1] == ".":
                raise _refused(whole, "IPv4 field must have at least one digit", text[position:])
            if len(fields) == 3:
                raise _refused(whole, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _refused(whole, "unexpected character", text[position:])
    if len(fields) < 3:
        raise _refused(whole, "IPv4 address too short")
    return bytes([*fields, value])


_HEX = re.compile(r"[0-9a-fA-F]*")


def _six(whole: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _refused(whole, "zone must be a non-empty string")
    groups = bytearray()
    ellipsis: int | None = None
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return IPv6Address(bytes(16)), zone
    while len(groups) < 16:
        match = _HEX.match(rest)
        digits = match.group() if match else ""
        if len(digits) > 4:
            raise _refused(whole, "each group must have 4 or less digits", rest)
        if not digits:
            raise _refused(whole, "each colon-separated field must have at least one digit", rest)
        if rest[len(digits) : len(digits) + 1] == ".":
            if (ellipsis is None and len(groups) != 12) or len(groups) + 4 > 16:
                raise _refused(whole, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            groups += _four(whole, rest)
            rest = ""
            break
        groups += int(digits, 16).to_bytes(2, "big")
        rest = rest[len(digits) :]
        if not rest:
            break
        if rest[0] != ":":
            raise _refused(whole, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _refused(whole, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis is not None:
                raise _refused(whole, "multiple :: in address", rest)
            ellipsis, rest = len(groups), rest[1:]
            if not rest:
                break
    if rest:
        raise _refused(whole, "trailing garbage after address", rest)
    if len(groups) < 16:
        if ellipsis is None:
            raise _refused(whole, "address string too short")
        groups[ellipsis:ellipsis] = bytes(16 - len(groups))
    elif ellipsis is not None:
        raise _refused(whole, "the :: must expand to at least one field of zeros")
    return IPv6Address(bytes(groups)), zone


def _is_mapped(value: IPv4Address | IPv6Address) -> bool:
    return value.version == 6 and int(value) >> 32 == 0xFFFF


def _address(text: str) -> IPAddress:
    try:
        value, zone = _parsed(text)
    except _Unreadable as problem:
        raise CelError(f"IP IPAddress {quoted(text)} parse error during conversion from string: {problem}") from None
    if zone:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(value):
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return IPAddress(value)


_PARSE_ERROR = "network address parse error during conversion from string: "


def _network(text: str) -> Network:
    def refused(reason: str) -> CelError:
        return CelError(f"{_PARSE_ERROR}{_PARSE_ERROR}netip.ParsePrefix({quoted(text)}): {reason}")

    head, slash, tail = text.rpartition("/")
    if not slash:
        raise refused("no '/'")
    try:
        value, zone = _parsed(head)
    except _Unreadable as problem:
        raise refused(str(problem)) from None
    if zone:
        raise refused("IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"0|[1-9][0-9]*", tail):
        raise refused(f"bad bits after slash: {quoted(tail)}")
    if len(tail) > 3 or int(tail) > value.max_prefixlen:
        raise refused("prefix length out of range")
    if _is_mapped(value):
        raise CelError(f"{_PARSE_ERROR}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Network(IPAddress(value), int(tail))


def _succeeds(parse: Any) -> Any:
    def test(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return test


def _is_global_unicast(address: IPAddress) -> bool:
    value = address.value
    if value.version == 4 and int(value) in (0, 0xFFFFFFFF):
        return False
    return not (value.is_unspecified or value.is_loopback or value.is_multicast or _is_link_local(address))


def _is_link_local(address: IPAddress) -> bool:
    value = address.value
    if value.version == 4:
        return int(value) >> 16 == 0xA9FE
    return int(value) >> 118 == 0x3FA


def _is_link_local_multicast(address: IPAddress) -> bool:
    value = address.value
    if value.version == 4:
        return int(value) >> 8 == 0xE00000
    return int(value) >> 112 & 0xFF0F == 0xFF02


def _contains_text(network: Network, text: str) -> bool:
    try:
        address = _address(text)
    except CelError:
        raise CelError(NO_SUCH_OVERLOAD) from None  # upstream loses the reason
    return network.contains(address)


def _contains_network(whole: Network, part: Network) -> bool:
    return whole.bits <= part.bits and whole.contains(part.address)


def _about_address(name: str, id: str, implementation: Any) -> Function:
    return function(name, member(id, (IP_TYPE,), BOOL, implementation))


FUNCTIONS: list[Function] = [
    function("ip", overload("string_to_ip", (STRING,), IP_TYPE, _address)),
    function("family", member("ip_family", (IP_TYPE,), INT, lambda address: address.value.version)),
    function(
        "ip.isCanonical",
        overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(_address(text)) == text),
    ),
    _about_address("isUnspecified", "ip_is_unspecified", lambda address: address.value.is_unspecified),
    _about_address("isLoopback", "ip_is_loopback", lambda address: address.value.is_loopback),
    _about_address("isLinkLocalMulticast", "ip_is_link_local_multicast", _is_link_local_multicast),
    _about_address("isLinkLocalUnicast", "ip_is_link_local_unicast", _is_link_local),
    _about_address("isGlobalUnicast", "ip_is_global_unicast", _is_global_unicast),
    function("isIP", overload("is_ip", (STRING,), BOOL, _succeeds(_address))),
    function("string", overload("ip_to_string", (IP_TYPE,), STRING, str)),
    function("cidr", overload("string_to_cidr", (STRING,), CIDR_TYPE, _network)),
    function(
        "containsIP",
        member(
            "cidr_contains_ip_string",
            (CIDR_TYPE, STRING),
            BOOL,
            _contains_text,
        ),
        member(
            "cidr_contains_ip_ip",
            (CIDR_TYPE, IP_TYPE),
            BOOL,
            lambda network, address: network.contains(address),
        ),
    ),
    function(
        "containsCIDR",
        member(
            "cidr_contains_cidr_string",
            (CIDR_TYPE, STRING),
            BOOL,
            lambda network, text: _contains_network(network, _network(text)),
        ),
        member("cidr_contains_cidr", (CIDR_TYPE, CIDR_TYPE), BOOL, _contains_network),
    ),
    function("ip", member("cidr_ip", (CIDR_TYPE,), IP_TYPE, lambda network: network.address)),
    function("prefixLength", member("cidr_prefix_length", (CIDR_TYPE,), INT, lambda network: network.bits)),
    function("masked", member("cidr_masked", (CIDR_TYPE,), CIDR_TYPE, lambda network: network.masked())),
    function("isCIDR", overload("is_cidr", (STRING,), BOOL, _succeeds(_network))),
    function("string", overload("cidr_to_string", (CIDR_TYPE,), STRING, str)),
]
