"""No selector, pattern or text of a tenant holds the scheduler or the embedded API server.

Children of their own measure CPU time (see `bounds`). An expression may be evaluated, or refused with a message; it may
take neither long nor much memory.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.hostile.bounds import bounded
from tests.plugins.default.dynamic_resources.builders import World, a_claim, a_claiming_pod, a_device, a_slice, wants
from tests.scheduler.conftest import (
    PATIENCE_SECONDS,
    a_configuration,
    a_live_scheduler,
    a_profile,
    among_themselves,
)
from tests.scheduler.plugins.test_claims_of_devices import a_document, a_pod
from tests.scheduler.plugins.test_claims_of_devices import a_slice as a_live_slice

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.custom.resources import column_of
from mooring.apiserver.custom.structural import check as structural_check
from mooring.base.durations import duration_seconds
from mooring.base.errors import Fault
from mooring.base.redaction import scrubbed
from mooring.base.visible import visible
from mooring.cel import conversions
from mooring.cel.device import LONGEST_EXPRESSION, CompiledSelector, DeviceInput, compile_selector
from mooring.cel.errors import CelError
from mooring.objects import names
from mooring.objects.quantity import exact
from mooring.objects.resource import DeviceClass, ResourceClaim
from mooring.objects.selectors import BadSelector, parse_selector

__all__ = ["among_themselves"]

HERE = "tests.hostile.test_expressions"
EACH_CPU_SECONDS = 10
"""For one expression, on a slow machine; most take a hundredth of it."""
MEMORY_MIB = 600
TOO_LONG = "operation cancelled: evaluation takes too long"
TOO_EXPENSIVE = "operation cancelled: actual cost limit exceeded"


def a_gpu() -> DeviceInput:
    return DeviceInput("gpu.example.com", {"model": "a100", "index": 4}, {"memory": "40Gi"})


def grown(levels: int, start: str, grow: str, end: str) -> str:
    """Names for values, each made of the one before."""
    text = end.replace("X", f"v{levels}")
    for level in range(levels, 0, -1):
        text = f"cel.bind(v{level}, {grow.replace('X', f'v{level - 1}')}, {text})"
    return f"cel.bind(v0, {start}, {text})"


def nested(levels: int, inner: str, macro: str = "all") -> str:
    for level in range(levels):
        inner = f"[1].{macro}(x{level}, {inner})"
    return inner


def alternating(levels: int) -> str:
    text = "1/0 == 1"
    for level in range(levels):
        text = f"(true && {text})" if level % 2 else f"(false || {text})"
    return text


def optional_chain(levels: int) -> str:
    return "optional.of(1)" + "".join(f".optMap(x{level}, x{level} + 1)" for level in range(levels)) + ".hasValue()"


AS = "a" * 64
LONG = "a" * 3000
ROW = "a{0,64}" * 12
LARGE_PATTERNS = f"lists.range(1000).all(i, !'{LONG}'.matches('^(a?){{1000}}b'))"
EACH = "lists.range(1000).all(i, lists.range(1000).all(j, {}))"
ATTACKS: dict[str, dict[str, tuple[str, Any]]] = {
    "patterns": {
        "bounded repetitions in a row": (f"'{AS}'.matches('^{ROW}b')", False),
        "a repetition that is large": (f"'{LONG}'.matches('^(a?){{1000}}b')", False),
        "repetitions in repetitions": (f"'{AS}'.matches('^(a+)+$') && !'{AS}!'.matches('^(a|aa)+$')", True),
        "a large pattern in a loop": (LARGE_PATTERNS, TOO_LONG),
        "patterns made in a loop": (
            f"lists.range(1000).all(i, !'{AS * 5}'.matches('^(a?){{' + string(i) + '}}b'))",
            TOO_LONG,
        ),
        "short patterns with large programs": (
            "lists.range(1000).all(i, !'a'.matches('\\\\pL{20}' + string(i)))",
            TOO_LONG,
        ),
        "a large pattern to find": (f"lists.range(1000).all(i, '{LONG}'.find('^(a?){{1000}}b') == '')", TOO_LONG),
        "many large searches": (f"'{LONG}'.findAll('((a?){{900}}b)|a').size() > 0", TOO_LONG),
        "a pattern that is too large": ("'a'.matches('\\\\pL{1000}')", "invalid matches argument"),
        "a pattern that grows": (grown(20, "'(a|b)*'", "X + X", "'a'.matches(X)"), TOO_EXPENSIVE),
    },
    "loops": {
        "additions": (EACH.format("i + j >= 0"), TOO_EXPENSIVE),
        "comparisons": ("lists.range(1000).all(i, lists.range(1000).exists(j, j == 999))", TOO_EXPENSIVE),
        "quantities": (EACH.format("quantity('1Gi').compareTo(quantity('10Gi')) < 0"), TOO_EXPENSIVE),
        "errors": ("lists.range(1000).all(i, lists.range(1000).exists(j, 1/0 == 1))", TOO_EXPENSIVE),
        "addresses": (EACH.format("url('https://a.b/c?d=e').getHost() == 'a.b'"), TOO_EXPENSIVE),
        "time zones": (
            "lists.range(100000).exists(i, timestamp('2020-01-01T00:00:00Z').getHours('A' + string(i)) < 0)",
            TOO_LONG,
        ),
    },
    "values that grow": {
        "a list": (grown(40, "[1]", "X + X", "X.size() > 0"), TOO_LONG),
        "a text": (grown(40, "'a'", "X + X", "X.size() > 0"), TOO_EXPENSIVE),
        "a text replaced by itself": (grown(5, "'aaaaaaaaaa'", "X.replace('a', X)", "X.size() > 0"), TOO_LONG),
        "a formatted text": (grown(20, "'aaaa'", "'%s%s%s%s'.format([X, X, X, X])", "X.size() > 0"), TOO_LONG),
        "a precision": ("'%.1000000000f'.format([1.0]) == ''", "precision: 100000… is too large"),
        "a joined text": (grown(20, "'aaaa'", "[X, X, X, X].join(X)", "X.size() > 0"), TOO_LONG),
        "a range": ("lists.range(9000000).size() > 0", TOO_LONG),
        "a loop without effect": ("lists.range(20000).distinct().size() > 0", TOO_EXPENSIVE),
        "a map sorted as a list": ("dyn({'a': 1, 'b': 2}).sortBy(e, e).size() > 0", "no such overload"),
        "sets": ("sets.contains(lists.range(10000), lists.range(10000))", TOO_EXPENSIVE),
    },
    "values that hold another one twice": {
        "compared": (grown(40, "[1]", "[X, X]", "X == X"), TOO_LONG),
        "compared as maps": (grown(40, "{'a': 1}", "{'a': X, 'b': X}", "X == X"), TOO_LONG),
        "looked for": (grown(40, "[1]", "[X, X]", "X in [X]"), TOO_LONG),
        "shown": (grown(30, "[1]", "[X, X]", "'%s'.format([X]) == ''"), TOO_LONG),
        "flattened": (grown(40, "dyn([1])", "dyn([X, X])", "X.flatten(100).size() > 0"), TOO_LONG),
        "gone through": (grown(40, "[1]", "[X, X]", "dyn(X).isSorted()"), TOO_LONG),
        "shown in an error": (grown(40, "dyn([1])", "dyn([X, X])", "[?X].size() > 0"), TOO_LONG),
    },
    "texts that are hard to read": {
        "nested loops that fail": (nested(60, "1/0 == 1"), "division by zero"),
        "nested loops": (nested(60, "true"), True),
        "nested loops that collect": (nested(40, "1", "map") + ".size() > 0", True),
        "terms that fail": (alternating(80), "division by zero"),
        "a macro that repeats": (optional_chain(100), "optMap() follows too large an expression"),
        "parentheses": ("(" * 5000, "recursion limit exceeded"),
        "quotes": ("'" * 9000, "Syntax error"),
        "an open text": ('"""' + "'a" * 4000, "Syntax error"),
        "a number of thousands of digits": ("1" * 9000 + " == 1", "invalid int literal"),
        "negations": ("!" * 9000 + "true", True),
        "steps": ("device" + ".a" * 4000, "max recursion depth exceeded"),
        "names": ("a" + " a" * 4000, "Syntax error"),
        "more than the API server accepts": (" " * LONGEST_EXPRESSION + "true", "expression is too long: 10244 bytes"),
    },
}


def evaluated(expression: str) -> tuple[float, Any]:
    """CPU seconds for compiling and for one device, and the value or the reason why there is none."""
    began = time.process_time()
    try:
        outcome: Any = CompiledSelector(expression).matches(a_gpu())
    except CelError as problem:
        outcome = str(problem)[:4000]
    return time.process_time() - began, outcome


def evaluated_all(group: str) -> dict[str, tuple[float, Any]]:
    return {name: evaluated(expression) for name, (expression, _) in ATTACKS[group].items()}


@pytest.mark.parametrize("group", ATTACKS)
def test_an_expression_ends_soon(group: str):
    found = bounded(f"{HERE}:evaluated_all", group, cpu_seconds=60, memory_mib=MEMORY_MIB)
    for name, (_, expected) in ATTACKS[group].items():
        seconds, outcome = found[name]
        assert outcome is expected or (isinstance(expected, str) and expected in str(outcome)), (name, outcome)
        assert seconds < EACH_CPU_SECONDS, name


PIECES = [
    "1", "0", "true", "'a'", f"'{AS}'", "[1, 2, 3]", "lists.range(1000)", "{'a': [1]}", "device.driver", "X + X",
    "device.attributes['gpu.example.com'].model", "[X, X]", "X.size()", "X == X", "X.all(i, X)", "X.exists(i, i == X)",
    "X.map(i, X)", "X.map(i, i + i)", "X.filter(i, X)", "X.matches(X)", "X.matches('^(a?){1000}b')", "X.replace('', X)",
    "X.matches('^a{0,64}a{0,64}a{0,64}b')", "X.findAll('a.*b|a')", "'%s%s'.format([X, X])", "X.join(X)", "X.split('')",
    "X.flatten(10)", "X.distinct()", "X.sort()", "X && X", "X || X", "X ? X : X", "cel.bind(v, X, [v, v] == [v, v])",
    "cel.bind(v, X, v + v)", "sets.contains(X, X)", "X in X", "quantity(X)", "isQuantity(X)", "semver(X)", "string(X)",
    "double(X)", "duration(X)", "1 / 0", "dyn(X)", "optional.of(X).optMap(v, v)", "X.lowerAscii()", "X.contains(X)",
    "X.exists_one(i, X)", "X.transformList(i, v, X)", "X.sortBy(e, X)", "{'a': X, 'b': X}", "X[0]", "[?optional.of(X)]",
    "X.sum()", "X.max()", "X.reverse()", "X.indexOf(X)", "strings.quote(X)", "url(X)", "timestamp(X)", "X.find(X)",
]  # fmt: skip


def any_expression(dice: random.Random, depth: int) -> str:
    piece = dice.choice(PIECES)
    while depth == 0 and "X" in piece:
        piece = dice.choice(PIECES)
    head, *rest = piece.split("X")
    return head + "".join(f"dyn({any_expression(dice, depth - 1)}){part}" for part in rest)


def slowest(seed: int, count: int) -> tuple[float, str]:
    dice = random.Random(seed)
    expressions = (f"dyn({any_expression(dice, dice.randrange(1, 7))}) == 1" for _ in range(count))
    return max((evaluated(each)[0], each) for each in expressions)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_expression_ends_soon(seed: int):
    seconds, expression = bounded(f"{HERE}:slowest", seed, 400, cpu_seconds=120, memory_mib=MEMORY_MIB)
    assert seconds < EACH_CPU_SECONDS, expression


# Time


class TimeIsOver(Exception):
    pass


class Looks:
    """A check that ends what calls it after some looks."""

    def __init__(self, most: int) -> None:
        self.count, self._most = 0, most

    def __call__(self) -> None:
        self.count += 1
        if self.count > self._most:
            raise TimeIsOver


@pytest.mark.parametrize(
    "expression",
    [
        EACH.format("i + j >= 0"),
        f"{EACH.format('i + j >= 0')} || true",
        grown(40, "[1]", "[X, X]", "X == X || true"),
        f"lists.range(1000).exists(i, '{LONG}'.matches('^(a?){{1000}}b'))",
    ],
)
def test_an_evaluation_looks_at_the_clock_and_nothing_absorbs_its_end(expression: str):
    looks = Looks(most=5)
    with pytest.raises(TimeIsOver):
        CompiledSelector(expression).matches(a_gpu(), looks)
    assert looks.count == 6


@pytest.mark.parametrize("expression", ["true", "device.driver == 'other'"])
def test_evaluations_that_take_no_time_look_at_the_clock_too(expression: str):
    with pytest.raises(TimeIsOver):
        CompiledSelector(expression).matches(a_gpu(), Looks(most=0))


def test_a_search_ends_in_time_however_many_devices_there_are():
    expensive = f"{EACH.format('i + j >= 0')} || false"  # half a second
    expensive = expensive.replace("lists.range(1000).all(i", "lists.range(100).all(i")
    slices = [a_slice(*(a_device(f"gpu-{at}") for at in range(1000)))]
    world = World(slices=slices, claims=[a_claim("claim", wants("r", 1, f"!({expensive})"))])
    began, looks = 1000.0, 0

    def monotonic() -> float:
        nonlocal looks
        looks += 1
        return began + looks * 0.2  # what a look costs, if an evaluation takes half a second

    world.services.clock.monotonic = monotonic  # type: ignore[method-assign]
    with pytest.raises(Fault, match="node node: timed out trying to allocate devices"):
        world.chosen(a_claiming_pod("claim"))
    assert looks < 60  # ten seconds' worth


def test_what_is_remembered_about_selectors_is_bounded():
    world = World(
        slices=[a_slice(a_device("gpu-0"))],
        claims=[a_claim(f"claim-{at}", wants("r", 1, f"device.driver != '{at}'")) for at in range(600)],
    )
    for at in range(600):
        assert world.chosen(a_claiming_pod(f"claim-{at}")) == {"r": ["gpu-0"]}
    (offered,) = world.plugin._slice_cache.index().usable_by(world.cluster.node("node")).pools[0].devices
    assert 0 < len(offered.selection_cache) <= 256


def test_compiled_selectors_are_kept_within_a_bound_of_memory():
    first = compile_selector("device.driver == 'first'")
    assert compile_selector("device.driver == 'first'") is first
    for at in range(40):
        compile_selector(f"device.driver == '{at}{'x' * 10_000}'")
    assert compile_selector("device.driver == 'first'") is not first


# A whole scheduler

HOSTILE = {
    "a pattern": (f"'{AS}'.matches('^{ROW}b')", "cannot allocate all claims"),
    "a large pattern": (LARGE_PATTERNS, f"CEL runtime error: {TOO_LONG}"),
    "a loop": (EACH.format("i + j >= 0"), f"CEL runtime error: {TOO_EXPENSIVE}"),
    "a value": (grown(40, "[1]", "[X, X]", "X == X"), f"CEL runtime error: {TOO_LONG}"),
}  # fmt: skip


WITHOUT_DEADLINE = "[{name: DynamicResources, args: {filterTimeout: 0s}}]"
"""So that the message is the evaluation's own, on a machine however busy."""


@pytest.mark.parametrize(("expression", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_pod_with_a_hostile_selector_is_reported_and_others_are_bound(
    server: EmbeddedApiServer, expression: str, reason: str
):
    config = a_configuration(a_profile("default-scheduler", args=WITHOUT_DEADLINE))
    async with a_live_scheduler(server, config, attempt_timeout_seconds=PATIENCE_SECONDS) as live:
        await live.node("node-1")
        await live.client.create(DeviceClass.KIND, a_document(DeviceClass, "gpu", {"selectors": []}))
        await a_live_slice(live, "node-1", "gpu-0", "gpu-1")
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        request = {"name": "r", "exactly": exactly | {"selectors": [{"cel": {"expression": expression}}]}}
        claim = a_document(ResourceClaim, "hostile", {"devices": {"requests": [request]}})
        await live.client.create(ResourceClaim.KIND, claim, "default")
        await a_pod(live, "hostile", "hostile")
        await live.pod("ours")
        assert await live.bound("ours") == ["node-1"]
        assert reason in await live.refused("hostile")


# The embedded API server

PATTERNS: dict[str, tuple[str, Any]] = {
    "repetitions in repetitions": ("^(a+)+$", "a" * 5000 + "!"),
    "alternatives in repetitions": ("^(a|a|aa)+$", "a" * 5000 + "!"),
    "bounded repetitions in a row": (f"^{ROW}b", AS),
    "a program that is large": ("^(a?){1000}b", "a" * 1_000_000),
    "many values": ("^(a?){1000}b", ["a" * 5000] * 500),
}


def refused_by_schema() -> list[str]:
    refused = []
    for name, (pattern, value) in PATTERNS.items():
        schema = {"type": "string", "pattern": pattern}
        if structural_check(value, schema if isinstance(value, str) else {"type": "array", "items": schema}):
            refused.append(name)
    return refused


def test_patterns_of_definitions_end_soon():
    assert bounded(f"{HERE}:refused_by_schema", cpu_seconds=30, memory_mib=MEMORY_MIB) == list(PATTERNS)


def test_a_value_that_is_too_long_for_its_pattern_is_refused_with_what_to_do():
    (wrong,) = structural_check("a" * 1_000_000, {"type": "string", "pattern": "^(a?){1000}b"})
    assert "is too long for its pattern '^(a?){1000}b': shorten one of them" in str(wrong)


def test_many_values_that_are_long_for_their_pattern_are_refused_together():
    schema = {"type": "array", "items": {"type": "string", "pattern": "^(a?){1000}b"}}
    *_, last = structural_check(["a" * 5000] * 500, schema)
    assert "the object and its schema are too large to be compared; shorten one of them" in str(last)


@pytest.mark.parametrize(
    "path", [".a[?match(@.b, '(a+)+$')]", ".a[?@.b =~ /(a+)+$/]", ".a..b..c", ".a" * 600, ".a[?@.b][?@.c][?@.d]"]
)
def test_a_column_takes_no_path_that_can_be_slow(path: str):
    with pytest.raises(ValueError, match=r"is an invalid JSONPath expression|is too large"):
        column_of({"name": "a", "type": "string", "jsonPath": path})


MANY = 200_000


def selector_of(function: str, text: str) -> CompiledSelector:
    return CompiledSelector(function.replace("X", f'"{text}"'))


READERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "a double": (conversions.to_double, ["1" * MANY + "x", "1." * MANY, "0x" + "f" * MANY, "1_" * MANY]),
    "a duration in CEL": (conversions.to_duration, ["1" * MANY, "1.1" * MANY, "1s" * MANY + "x", f"0.{'1' * MANY}s"]),
    "an int": (conversions.to_int, ["1" * MANY, "+" + "0" * MANY]),
    "a timestamp": (conversions.to_timestamp, ["2020-01-01T00:00:00." + "1" * MANY + "x"]),
    "a duration": (duration_seconds, ["1" * MANY, "1.1" * MANY, "1s" * MANY + "x"]),
    "a quantity": (exact, ["1" * MANY + "x", "1." * MANY, "0" * MANY + "!"]),
    "a label selector": (parse_selector, ["," * MANY, "a in (" + "," * MANY, "(" * MANY, "a" + " " * MANY + "!"]),
    "a subdomain": (names.dns_subdomain, ["a" * MANY + "!", "a-" * MANY, "a." * MANY, "a.a-" * MANY]),
    "a label": (names.label_value, ["a" * MANY + "!", "a." * MANY]),
    "credentials in a text": (scrubbed, ["a" * MANY + "://", "http://a/" + "!" * MANY + "b", "a://" * MANY]),
    "control characters": (visible, ["\x1b" * MANY, "\\n" * MANY, "é\u202e" * MANY]),
    "a qualified name": (names.qualified_name, ["a" * MANY + "!", "a/" * MANY, "a." * MANY + "/a"]),
    **{
        f"CEL's {function}": (
            partial(selector_of, function),
            [filler * (LONGEST_EXPRESSION // len(filler) - 60) + "!" for filler in fillers],
        )
        for function, fillers in {
            "isQuantity(X)": ["0", "1", "1.", "e"],
            "isSemver(X)": ["1", "1.", "1.1.1-1."],
            "isURL(X)": ["a", "http://", "%41", "a:"],
            "isIP(X)": ["1.", "a:", "::"],
            "isCIDR(X)": ["1.", "/1"],
            "format.dns1123Subdomain().validate(X).hasValue()": ["a", "a.", "a-"],
            "format.named('qualifiedName').hasValue()": ["a"],
        }.items()
    },
}  # fmt: skip


def read(name: str) -> float:
    reader, texts = READERS[name]
    slowest = 0.0
    for text in texts:
        began = time.process_time()
        try:
            found = reader(text)
            if isinstance(found, CompiledSelector) and found.error is None:
                found.matches(a_gpu())
        except (CelError, ValueError, BadSelector):
            pass
        slowest = max(slowest, time.process_time() - began)
    return slowest


def read_all() -> dict[str, float]:
    return {name: read(name) for name in READERS}


def test_no_text_is_slow_to_read():
    found = bounded(f"{HERE}:read_all", cpu_seconds=100)
    assert {name: seconds for name, seconds in found.items() if seconds > EACH_CPU_SECONDS / 2} == {}
