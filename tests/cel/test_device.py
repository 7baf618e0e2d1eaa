"""Device selectors: what a selector sees of a device, and its errors."""

from __future__ import annotations

import pytest

from mooring.cel.device import AttributeValue, AttributeVersion, CompiledSelector, DeviceInput, compile_selector
from mooring.cel.errors import CelError, CostLimitExceeded


def a_gpu(**attributes: AttributeValue) -> DeviceInput:
    known: dict[str, AttributeValue] = {
        "model": "a100",
        "memory": 40,
        "healthy": True,
        "firmware": AttributeVersion("1.2.3"),
        "dra.example.com/numa": 1,
    }
    return DeviceInput("gpu.example.com", {**known, **attributes}, {"memory": "40Gi", "other.io/slots": "7"}, None)


SELECTED = {
    "the driver is text": ('device.driver == "gpu.example.com"', True),
    "a name without a domain is in the driver's": ('device.attributes["gpu.example.com"].model == "a100"', True),
    "a name with a domain is in that domain": ('device.attributes["dra.example.com"].numa == 1', True),
    "a domain that the device does not have is an empty map": ('"x" in device.attributes["nope.io"]', False),
    "has() finds such a domain": ("has(device.attributes.nope)", True),
    "but it is not in the map": ('"nope.io" in device.attributes', False),
    "a boolean attribute is a result": ('device.attributes["gpu.example.com"].healthy', True),
    "versions compare as versions": (
        'device.attributes["gpu.example.com"].firmware.isGreaterThan(semver("1.2.3-rc.1"))',
        True,
    ),
    "capacities compare as quantities": (
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40960Mi")) == 0',
        True,
    ),
    "an unset flag means allocated once": ("device.allowMultipleAllocations", False),
    "a domain can have a name": ('cel.bind(gpu, device.attributes["gpu.example.com"], gpu.memory > 39)', True),
    "a scalar includes what it equals": ('device.attributes["gpu.example.com"].model.includes("a100")', True),
    "and nothing else": ('device.attributes["gpu.example.com"].model.includes("a")', False),
    "a version includes no text": ('device.attributes["gpu.example.com"].firmware.includes("1.2.3")', False),
    "numbers are included by value": ('device.attributes["gpu.example.com"].memory.includes(40.0)', True),
    "a list includes its elements": ("[1, 2].includes(2)", True),
    "but not itself": ("[1, 2].includes([1, 2])", False),
    "48 values may be looked through": ("lists.range(48).includes(47)", True),
    "what fails does not matter where something else decides": (
        'device.attributes["gpu.example.com"].zz == 1 || device.driver.startsWith("gpu")',
        True,
    ),
}


@pytest.mark.parametrize(("expression", "selected"), SELECTED.values(), ids=SELECTED.keys())
def test_a_selector_sees(expression: str, selected: bool) -> None:
    assert compile_selector(expression).matches(a_gpu()) is selected


COMPILE_ERRORS = {
    "an unknown variable": (
        "foo",
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^",
    ),
    "an unknown field": (
        "device.foo == 1",
        "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo == 1\n | ......^",
    ),
    "a result that is no boolean": (
        "device.driver",
        "must evaluate to bool or the unknown type, not string",
    ),
    "a conversion that cannot succeed": (
        'int("x") == 1',
        "program instantiation failed: type conversion error from 'string' to 'int'",
    ),
    "two mistakes at once, in their order": (
        "foo\n&& bar",
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^\n"
        "ERROR: <input>:2:4: undeclared reference to 'bar' (in container '')\n | && bar\n | ...^",
    ),
}


@pytest.mark.parametrize(("expression", "error"), COMPILE_ERRORS.values(), ids=COMPILE_ERRORS.keys())
def test_a_selector_that_does_not_compile_has_an_error(expression: str, error: str) -> None:
    selector = compile_selector(expression)
    assert selector.error == error
    with pytest.raises(CelError):
        selector.matches(a_gpu())


RUN_TIME_ERRORS = {
    "a name that is not there": ('device.attributes["nope.io"].x', "no such key: x"),
    "a version compared with text": (
        'device.attributes["gpu.example.com"].firmware == "1.2.3"',
        "no such overload",
    ),
    "an attribute that is no boolean": (
        'device.attributes["gpu.example.com"].model',
        "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'",
    ),
    "a long list for includes": (
        "lists.range(49).includes(49)",
        "'includes' function cannot be applied to lists longer than 48 values",
    ),
    "an attribute of another type": (
        'device.attributes["gpu.example.com"].model.isGreaterThan(semver("1.0.0"))',
        "no such overload: isGreaterThan(string, kubernetes.Semver)",
    ),
}


@pytest.mark.parametrize(("expression", "error"), RUN_TIME_ERRORS.values(), ids=RUN_TIME_ERRORS.keys())
def test_a_selector_without_a_value_for_the_device_raises(expression: str, error: str) -> None:
    with pytest.raises(CelError) as raised:
        compile_selector(expression).matches(a_gpu())
    assert str(raised.value) == error


UNREADABLE = {
    "a version that is none": (
        AttributeVersion("1.2"),
        "attribute firmware: parse semantic version: No Major.Minor.Patch elements found",
    ),
    "a value of no kind that we know": (None, "attribute firmware: unsupported attribute value"),
}


@pytest.mark.parametrize(("value", "error"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_device_that_cannot_be_read_is_an_error_for_every_selector(value: AttributeValue, error: str) -> None:
    with pytest.raises(CelError) as raised:
        compile_selector("true").matches(a_gpu(firmware=value))
    assert str(raised.value) == error


def test_one_expression_is_compiled_once() -> None:
    assert compile_selector("device.driver == 'x'") is compile_selector("device.driver == 'x'")


ORDINARY = [
    'device.driver.startsWith("gpu")',
    'device.attributes["gpu.example.com"].model.matches("^a[0-9]+(-[a-z]{2,8})?$")',
    'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("10Gi").add(quantity("1Gi")))',
    'device.attributes["gpu.example.com"].firmware.compareTo(semver("1.2.3")) >= 0',
    '["a100", "h100"].exists(model, device.attributes["gpu.example.com"].model == model)',
    'cel.bind(own, device.attributes["gpu.example.com"], has(own.model) && own.?index.orValue(0) < 4)',
]


@pytest.mark.parametrize("expression", ORDINARY)
def test_a_selector_that_cannot_exceed_the_budget_is_not_metered(expression: str) -> None:
    program = CompiledSelector(expression).program
    assert program is not None
    assert not program.is_metered


def test_a_selector_that_exceeds_the_budget_is_stopped_and_nothing_absorbs_it() -> None:
    selector = compile_selector("lists.range(2000000).size() > 0 || true")
    with pytest.raises(CostLimitExceeded, match=r"^operation cancelled: actual cost limit exceeded$"):
        selector.matches(a_gpu())
