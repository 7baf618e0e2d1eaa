"""The libraries, one table each: what a function gives, or how it refuses. Everything else is in the recorded cases."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.cel import CelError, Environment
from mooring.cel.values import NONE, Optional, Uint

ENVIRONMENT = Environment({})


def outcome(expression: str) -> Any:
    program = ENVIRONMENT.compile(expression)
    try:
        return program.evaluate({})
    except CelError as problem:
        return f"error: {problem}"


STRINGS = {
    "'tacocat'.charAt(3)": "o",
    "'tacocat'.charAt(8)": "error: index out of range: 8",
    "'hello mellow'.indexOf('ello', 2)": 7,
    "'hello mellow'.lastIndexOf('ello', 6)": 1,
    "'TacoCat É'.lowerAscii()": "tacocat É",
    "'hello hello'.replace('he', 'we', 1)": "wello hello",
    "'hello'.split('', 2)": ["h", "ello"],
    "'a,b,c'.split(',', 0)": [],
    "'tacocat'.substring(4, 2)": "error: invalid substring range. start: 4, end: 2",
    "' \\ttrim\\n '.trim()": "trim",
    "['x', 'y'].join('-')": "x-y",
    "strings.quote('a\"b')": '"a\\"b"',
    "'%s has %d of %.1f'.format(['x', 2, 1500.25])": "x has 2 of 1,500.2",
    "'%s'.format([{'b': [1, 2.5], 'a': null}])": '{"a":null, "b":[1, 2.500000]}',
}
LISTS = {
    "[1, 2, 2].isSorted()": True,
    "['b', 'a'].isSorted()": False,
    "[1u, 2u].sum()": Uint(3),
    "[9223372036854775807, 1].sum()": "error: integer overflow",
    "[3, 1, 2].min()": 1,
    "['a', 'c', 'b'].max()": "c",
    "[1, 2, 1].lastIndexOf(1)": 2,
    "[3, 1, 2].sort()": [1, 2, 3],
    "['ccc', 'a', 'bb'].sortBy(x, x.size())": ["a", "bb", "ccc"],
    "[1, 2, 3, 4].slice(1, 3)": [2, 3],
    "[1, 2].slice(1, 3)": "error: cannot slice(1, 3), list is length 2",
    "[1, 2, 1].distinct()": [1, 2],
    "[[1], [2, 3]].flatten()": [1, 2, 3],
    "lists.range(3).reverse()": [2, 1, 0],
    "[1, 2].first().value() + [1, 2].last().value()": 3,
}
SETS = {
    "sets.contains([1, 2, 3], [2, 1])": True,
    "sets.equivalent([1, 1], [1])": True,
    "sets.intersects(['a'], ['b'])": False,
}
QUANTITIES = {
    "quantity('1.5Gi').isGreaterThan(quantity('1G'))": True,
    "quantity('1k').isInteger() && !quantity('1.0').isInteger()": True,
    "quantity('50m').asInteger()": "error: cannot convert value to integer",
    "quantity('1GG')": "error: unable to parse quantity's suffix",
    "quantity('2').add(3).sub(quantity('1')).asInteger()": 4,
    "sign(quantity('-1'))": -1,
    "quantity('250m').asApproximateFloat()": 0.25,
}
VERSIONS = {
    "semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))": True,
    "semver('v1.02', true) == semver('1.2.0')": True,
    "semver('1.2')": "error: No Major.Minor.Patch elements found",
    "isSemver('1.2.3+build')": True,
    "semver('1.2.3').minor()": 2,
}
ADDRESSES = {
    "string(ip('2001:DB8::0:1'))": "2001:db8::1",
    "ip('127.0.0.1').isLoopback() && ip('::').isUnspecified()": True,
    "ip('1.2.3')": 'error: IP IPAddress "1.2.3" parse error during conversion from string: '
    'ParseAddr("1.2.3"): IPv4 address too short',
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')": True,
    "cidr('10.0.0.0/8').containsIP('11.0.0.1')": False,
    "string(cidr('10.1.2.3/8').masked())": "10.0.0.0/8",
    "isCIDR('10.0.0.0/33')": False,
}
URLS = {
    "url('https://[::1]:80/a%20b?c=d&c=e#f').getHostname()": "::1",
    "url('https://example.com:80/a b').getEscapedPath()": "/a%20b",
    "url('https://example.com/?c=d&c=e').getQuery()": {"c": ["d", "e"]},
    "url('example')": 'error: URL parse error during conversion from string: parse "example": invalid URI for request',
    "isURL('/path')": True,
}
PATTERNS = {
    "'abc 123'.find('[0-9]+')": "123",
    "'abc 123'.find('xyz')": "",
    "'123 abc 456'.findAll('[0-9]+', 1)": ["123"],
    "'ab'.matches('^a') && !'ba'.matches('^a')": True,
}
FORMATS = {
    "format.dns1123Label().validate('web-1')": NONE,
    "format.named('nope')": NONE,
    "format.uuid().validate('x').value()": ["does not match the UUID format"],
    "format.date().validate('2023-02-29').hasValue()": True,
    "format.dns1123LabelPrefix().validate('web-')": NONE,
}
OPTIONALS = {
    "{'a': 1}.?a": Optional(1),
    "{'a': 1}[?'b']": NONE,
    "{'a': {'b': 2}}.?a.b.orValue(3)": 2,
    "optional.none().or(optional.of(4)).value()": 4,
    "optional.none().value()": "error: optional.none() dereference",
    "optional.of(2).optMap(x, x * 2)": Optional(4),
    "[?optional.none(), ?optional.of(1)]": [1],
    "{?'a': optional.none(), 'b': 1}": {"b": 1},
    "optional.ofNonZeroValue('')": NONE,
}
TIMES = {
    "timestamp('2023-01-01T00:30:00Z').getHours('+02:30')": 3,
    "timestamp('2023-01-01T00:30:00Z').getDayOfWeek()": 0,
    "timestamp('2024-02-29T00:00:00Z').getDayOfYear('UTC')": 59,
    "string(timestamp('2023-01-01T00:00:00Z') - duration('90m'))": "2022-12-31T22:30:00Z",
    "duration('90m').getHours()": 1,
    "timestamp('9999-12-31T23:59:59Z') + duration('1s')": "error: timestamp overflow",
}
LOOPS = {
    "[1, 2, 3].transformList(i, v, v > 1, i * v)": [2, 6],
    "{'a': 1}.transformMap(k, v, v + 1)": {"a": 2},
    "{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k})": "error: insert failed: key x already exists",
    "{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2)": True,
    "[1, 2, 2].exists_one(x, x == 2)": False,
    "[0, 2].all(x, 4 / x == 2)": "error: division by zero",
    "[0, 1].exists(x, 4 / x == 4)": True,
}
TABLES = {
    **STRINGS,
    **LISTS,
    **SETS,
    **QUANTITIES,
    **VERSIONS,
    **ADDRESSES,
    **URLS,
    **PATTERNS,
    **FORMATS,
    **OPTIONALS,
    **TIMES,
    **LOOPS,
}


@pytest.mark.parametrize(("expression", "expected"), TABLES.items(), ids=TABLES.keys())
def test_what_a_function_gives(expression: str, expected: Any) -> None:
    found = outcome(expression)
    assert found == expected
    assert type(found) is type(expected)
