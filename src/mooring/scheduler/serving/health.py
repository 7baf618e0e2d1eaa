"""Health checks in the API machinery's form: /healthz, /livez, /readyz, each whole or check by check.

A check returns what is wrong, or None. It runs on the serving thread, so it must only
read what another thread may read at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

Check = Callable[[], str | None]


def ping() -> str | None:
    """The check that always passes."""
    return None


def _not_observed(_endpoint: str, _check: str, _is_well: bool) -> None: ...


@dataclass(frozen=True)
class HealthResult:
    """Text for a status line of 200 or 500."""

    is_well: bool
    text: str


@dataclass
class Health:
    """The checks by endpoint name (`healthz`, `livez`, `readyz`). An endpoint without any has `ping`."""

    checks: Mapping[str, Mapping[str, Check]]
    observed: Callable[[str, str, bool], None] = _not_observed
    """Called for every check that ran: endpoint, name, whether it passed."""

    def run(self, endpoint: str, *, excluded: Collection[str] = (), verbose: bool = False) -> HealthResult:
        """All checks of an endpoint. The reason of a failure is withheld: the client may be anonymous."""
        lines, failed = [], False
        checks = self._of(endpoint)
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            wrong = check()
            self.observed(endpoint, name, wrong is None)
            failed |= wrong is not None
            lines.append(f"[+]{name} ok" if wrong is None else f"[-]{name} failed: reason withheld")
        if unknown := sorted(set(excluded) - set(checks)):
            named = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {named}")
        if failed:
            return HealthResult(False, "\n".join([*lines, f"{endpoint} check failed"]) + "\n")
        if not verbose:
            return HealthResult(True, "ok")
        return HealthResult(True, "\n".join([*lines, f"{endpoint} check passed"]) + "\n")

    def run_one(self, endpoint: str, name: str) -> HealthResult | None:
        """One check by name; None if the endpoint has no such check."""
        check = self._of(endpoint).get(name)
        if check is None:
            return None
        wrong = check()
        self.observed(endpoint, name, wrong is None)
        return HealthResult(True, "ok") if wrong is None else HealthResult(False, f"internal server error: {wrong}\n")

    def _of(self, endpoint: str) -> Mapping[str, Check]:
        return self.checks[endpoint] or {"ping": ping}
