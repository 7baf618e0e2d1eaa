"""Health answers in the API machinery's form: /healthz, /livez, /readyz, each whole or check by check.

A check is a question that answers with what is wrong, or None. It is asked on the serving thread, so it must only
read what another thread may read at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

Check = Callable[[], str | None]


def ping() -> str | None:
    """The check that passes whenever it can be asked."""
    return None


def _nobody(_endpoint: str, _check: str, _is_well: bool) -> None: ...


@dataclass(frozen=True)
class HealthAnswer:
    """Text for a status line of 200 or 500."""

    is_well: bool
    text: str


@dataclass
class Health:
    """The checks by endpoint name (`healthz`, `livez`, `readyz`). An endpoint without any has `ping`."""

    checks: Mapping[str, Mapping[str, Check]]
    observed: Callable[[str, str, bool], None] = _nobody
    """Told of every check that was asked: endpoint, name, whether it passed."""

    def answer(self, endpoint: str, *, excluded: Collection[str] = (), verbose: bool = False) -> HealthAnswer:
        """All checks of an endpoint. Why one failed is not told: whoever may ask this need not be anybody."""
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
            return HealthAnswer(False, "\n".join([*lines, f"{endpoint} check failed"]) + "\n")
        if not verbose:
            return HealthAnswer(True, "ok")
        return HealthAnswer(True, "\n".join([*lines, f"{endpoint} check passed"]) + "\n")

    def answer_one(self, endpoint: str, name: str) -> HealthAnswer | None:
        """One check by name; None if the endpoint has no such check."""
        check = self._of(endpoint).get(name)
        if check is None:
            return None
        wrong = check()
        self.observed(endpoint, name, wrong is None)
        return HealthAnswer(True, "ok") if wrong is None else HealthAnswer(False, f"internal server error: {wrong}\n")

    def _of(self, endpoint: str) -> Mapping[str, Check]:
        return self.checks[endpoint] or {"ping": ping}
