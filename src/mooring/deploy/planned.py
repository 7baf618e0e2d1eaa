"""Which names, flags and rights a deployment gets: from the configuration, and from its mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mooring import __version__
from mooring.base.errors import Problem
from mooring.config import Configuration, LeaderElection
from mooring.deploy.manifests import PORT, Deployed, Memory, Mode
from mooring.deploy.network import Ingress
from mooring.deploy.rights import Right
from mooring.objects.quantity import BadQuantity, whole

IMAGE = f"mooring:{__version__}"
NAMESPACE = "mooring-system"
KUBE_SCHEDULER = "kube-scheduler"
DEFAULT_SCHEDULER = "default-scheduler"
LEAST_MEMORY = 64 * 1024 * 1024
MOST_CONFIG_MAP_BYTES = 1_000_000
"""An object may have 1 MiB; some of it is metadata."""


def name_for(mode: Mode, configuration: Configuration) -> str:
    """After the profile, as far as a name may look like it."""
    if mode is Mode.SHADOW:
        return "mooring-shadow"
    first = configuration.profiles[0].scheduler_name
    if first == DEFAULT_SCHEDULER:
        return "mooring"
    return re.sub(r"[^a-z0-9]+", "-", first.lower()).strip("-")[:50].strip("-") or "mooring"


def flags_for(mode: Mode, configuration: Configuration, name: str, *, verbosity: int) -> Iterator[str]:
    """The flags of the command line besides the mounted files."""
    yield f"--secure-port={PORT}"
    election = configuration.leader_election
    if mode is Mode.SHADOW:
        yield "--shadow"
        # Its rights are to read and nothing else: it may not even create TokenReviews.
        yield "--authentication-skip-lookup=true"
        yield "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"
    if election.leader_elect and mode is not Mode.SHADOW and election.resource_name == KUBE_SCHEDULER:
        # The cluster's own scheduler holds that lease: this one would stand by for ever.
        yield f"--leader-elect-resource-name={name}"
    yield f"--v={verbosity}"


def deployed(
    mode: Mode,
    *,
    name: str,
    namespace: str,
    image: str,
    config: str,
    flags: Sequence[str],
    rights: tuple[Right, ...],
    election: LeaderElection,
    plugins: Mapping[str, str],
    holds_credentials: bool = False,
    replicas: int | None = None,
    memory: Memory,
    ingress: Ingress | None,
) -> Deployed:
    """All of it together. Two replicas where one can take over from the other."""
    elects = election.leader_elect
    return Deployed(
        name=name,
        namespace=namespace,
        image=image,
        config=config,
        flags=tuple(flags),
        rights=rights,
        plugins=plugins,
        holds_credentials=holds_credentials,
        replicas=replicas or (2 if elects and mode is Mode.SECOND_SCHEDULER else 1),
        elects=elects,
        reads_authentication=mode is not Mode.SHADOW,
        memory=memory,
        ingress=ingress,
    )


def problems_of(found: Deployed) -> list[Problem]:
    """What a cluster would refuse, or what could not work there."""
    problems = []
    if found.replicas > 1 and not found.elects:
        problems.append(
            Problem("--replicas", f"{found.replicas} would all bind pods: switch leader election on, or run one")
        )
    problems += _memory_problems(found.memory)
    for what, texts in (("--config", [found.config]), ("--plugins", list(found.plugins.values()))):
        size = sum(len(text.encode()) for text in texts)
        if size > MOST_CONFIG_MAP_BYTES:
            problems.append(
                Problem(what, f"{size} bytes are too many for a ConfigMap (1 MiB); put them into an image of your own")
            )
    return problems


def _memory_problems(memory: Memory) -> list[Problem]:
    problems, sizes = [], {}
    for flag, text in (("--memory-request", memory.request), ("--memory-limit", memory.limit)):
        try:
            sizes[flag] = whole(text)
        except BadQuantity as error:
            problems.append(Problem(flag, str(error)))
            continue
        if sizes[flag] < LEAST_MEMORY:
            problems.append(Problem(flag, f"must be 64Mi or more, got {text}: the scheduler would not start"))
    if not problems and sizes["--memory-request"] > sizes["--memory-limit"]:
        message = f"must be at least what is requested ({memory.request}), got {memory.limit}"
        problems.append(Problem("--memory-limit", message))
    return problems


def warnings_of(mode: Mode, configuration: Configuration) -> Iterator[str]:
    """What is allowed, but often a mistake."""
    names = [profile.scheduler_name for profile in configuration.profiles]
    if mode is Mode.SECOND_SCHEDULER and DEFAULT_SCHEDULER in names:
        yield (
            f"the profile {DEFAULT_SCHEDULER} is also the cluster's own scheduler's: both would bind the same pods. "
            "Give it another schedulerName, or write --as replacement"
        )
    if mode is Mode.REPLACEMENT and DEFAULT_SCHEDULER not in names:
        yield (
            f"no profile is called {DEFAULT_SCHEDULER}: with kube-scheduler gone, pods that name no scheduler would "
            "wait for ever"
        )
