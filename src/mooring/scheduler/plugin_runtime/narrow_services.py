"""Services as a plugin gets them: what the framework promises of each, and nothing else of the part that provides it.

The parts themselves are shared by all plugins and by the scheduler. An attribute that one plugin set would be there for
all others.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Protocol

from mooring.objects.read_only import refuse_attribute

_SERVICE = "_service"


def narrow(service: Any, promise: Any) -> Any:
    """The service with the members of its protocol. Anything that is promised as a class is returned as it is."""
    if Protocol not in promise.__mro__:
        return service
    narrowed, methods = _class_of(promise)
    found: Any = object.__new__(narrowed)
    object.__setattr__(found, _SERVICE, service)
    for name in methods:  # bound once: rules that run node by node call them
        object.__setattr__(found, name, getattr(service, name))
    return found


@functools.cache
def _class_of(promise: type) -> tuple[type, tuple[str, ...]]:
    promised = {name: member for base in promise.__mro__ for name, member in vars(base).items() if base is not object}
    methods = tuple(name for name, member in promised.items() if inspect.isfunction(member) and name[0] != "_")
    members: dict[str, Any] = {name: _read(name) for name, each in promised.items() if isinstance(each, property)}
    members["__iter__"] = lambda self: iter(getattr(self, _SERVICE))
    options = {"__slots__": (_SERVICE, *methods), "__setattr__": refuse_attribute, "__delattr__": refuse_attribute}
    return type(promise.__name__, (), members | options), methods


def _read(name: str) -> property:
    return property(lambda self: getattr(getattr(self, _SERVICE), name))
