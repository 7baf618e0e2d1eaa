"""Kubernetes' CEL: the Common Expression Language with the libraries that an API server has.

`Environment` declares variables and compiles expressions; `mooring.cel.device` is the environment of device selectors.
"""

from __future__ import annotations

from mooring.cel.environment import Environment, Program
from mooring.cel.errors import CelError, CompileError

__all__ = ["CelError", "CompileError", "Environment", "Program"]
