"""Pods whose requests are spread over containers, sidecars, overhead and pod-level resources in some way."""

from __future__ import annotations

from typing import Any

from mooring_conformance.generate.dice import Dice, Json, quantity
from mooring_conformance.generate.objects import a_container, a_pod


def effective_requests(pod: Json) -> dict[str, int]:
    """The pod's request per resource (numbers as generated), from the
    numeric mirror kept in p['_n'] (removed before output)."""
    n = pod["_n"]
    names = set()
    for c in n["init"] + n["main"]:
        names |= set(c[1])
    tot: Json = {}
    for res in names | set(n["overhead"]) | set(n["podlevel"]):
        main = sum(c[1].get(res, 0) for c in n["main"])
        side = 0
        best = 0
        for restart, req in n["init"]:
            if restart:
                side += req.get(res, 0)
                best = max(best, side)
            else:
                best = max(best, side + req.get(res, 0))
        v = max(main + side, best)
        if res in n["podlevel"]:
            v = n["podlevel"][res]
        tot[res] = v + n["overhead"].get(res, 0)
    return tot


def a_pod_requesting(
    dice: Dice,
    name: str,
    want: dict[str, int],
    ns: str = "default",
    odd: float = 0.5,
    fancy: float = 0.5,
    limits: float = 0.2,
    **kw: Any,
) -> Json:
    """A pod whose effective request is about `want` (dict of numbers).
    Splits it over containers, init containers, sidecars, overhead and
    pod-level resources."""
    want = dict(want)
    n: Json = {"main": [], "init": [], "overhead": {}, "podlevel": {}}
    spec: Json = {}
    extended = {k: v for k, v in want.items() if k not in ("cpu", "memory", "ephemeral-storage")}
    base = {k: v for k, v in want.items() if k in ("cpu", "memory", "ephemeral-storage")}
    if dice.chance(fancy * 0.3):
        ov: Json = {}
        for k in ("cpu", "memory"):
            if base.get(k, 0) > 1 and dice.chance(0.8):
                ov[k] = base[k] // dice.choice([2, 4, 8, 10])
                base[k] -= ov[k]
        if ov:
            n["overhead"] = ov
            spec["overhead"] = {k: quantity(dice, k, v, odd) for k, v in ov.items()}
            spec["runtimeClassName"] = "kata"
    kinds = ["main"] * dice.choice([1, 1, 1, 2, 3])
    if dice.chance(fancy * 0.5):
        kinds.append("side")
    shares: list[dict[str, int]] = [{} for _ in kinds]
    for k, v in base.items():
        left = v
        for i in range(len(kinds) - 1):
            x = dice.choice([0, left // 2, left // 3, min(left, 1)])
            shares[i][k] = x
            left -= x
        shares[-1][k] = left
    if extended:
        i = dice.randrange(kinds.count("main"))
        for k, v in extended.items():
            shares[i][k] = v

    def mk(
        node_name: str, req: dict[str, int], restart: str | None = None, image: str = "registry.example.com/app:v1"
    ) -> tuple[Json, dict[str, int]]:
        rq = {k: quantity(dice, k, v, odd) for k, v in req.items() if v or dice.chance(0.3)}
        if any(k.startswith("hugepages-") for k in rq) and not ("cpu" in rq or "memory" in rq):
            rq["cpu"], req = "0", {**req, "cpu": 0}
        lim = {k: rq[k] for k in rq if k not in ("cpu", "memory", "ephemeral-storage")}
        plain = {k: v for k, v in rq.items() if k not in lim}
        if dice.chance(limits):
            # limits without requests: the request is defaulted to the limit
            for k in list(plain):
                if dice.chance(0.5):
                    lim[k] = plain[k]
                    if dice.chance(0.5):
                        del plain[k]
        return a_container(node_name, image, plain or None, lim or None, restart=restart), {
            k: v for k, v in req.items() if k in rq
        }

    containers, inits = [], []
    for i, (kind, sh) in enumerate(zip(kinds, shares, strict=False)):
        c, num = mk(f"{'c' if kind == 'main' else 's'}{i}", sh, "Always" if kind == "side" else None)
        if kind == "main":
            containers.append(c)
            n["main"].append((False, num))
        else:
            inits.append(c)
            n["init"].append((True, num))
    if dice.chance(fancy * 0.5):
        # an ordinary init container, before or after the sidecar, below or
        # above what the main containers need
        num = {k: int(v * dice.choice([0.5, 1, 1, 1.25])) for k, v in base.items() if dice.chance(0.8)}
        c, num = mk("init0", num)
        at = dice.randrange(len(inits) + 1)
        inits.insert(at, c)
        n["init"].insert(at, (False, num))
    if inits:
        spec["initContainers"] = inits
    pod = a_pod(name, ns, containers=containers, **spec, **kw)
    pod["_n"] = n
    if dice.chance(fancy * 0.25) and not n["overhead"]:
        # Pod-level requests: at least what the containers need together.
        eff = effective_requests(pod)
        plugins: Json = {}
        for k in ("cpu", "memory"):
            if dice.chance(0.8):
                plugins[k] = eff.get(k, 0) + dice.choice([0, 0, 1, 100, 500])
                if not plugins[k]:
                    del plugins[k]
        if plugins:
            rq = {k: quantity(dice, k, v, odd) for k, v in plugins.items()}
            lim = {
                k: quantity(dice, k, v + dice.choice([0, 1000]), odd) for k, v in plugins.items() if dice.chance(0.35)
            }
            for c in pod["spec"]["containers"]:  # the API server defaults these from the containers
                for k, q in c["resources"].get("limits", {}).items():
                    if k.startswith("hugepages-"):
                        lim[k] = rq[k] = q
                        plugins[k] = eff[k]
            if lim:
                for k in ("cpu", "memory"):
                    if k not in rq and any(k in c[1] for c in n["init"] + n["main"]):
                        rq[k] = quantity(dice, k, eff[k], 0)
                        plugins[k] = eff[k]
            n["podlevel"] = plugins
            pod["spec"]["resources"] = {"requests": rq}
            if lim:
                pod["spec"]["resources"]["limits"] = lim
    return pod


def without_note(o: Json) -> Json:
    o.pop("_n", None)
    return o


def without_notes(objects: list[Json]) -> list[Json]:
    return [without_note(o) for o in objects]
