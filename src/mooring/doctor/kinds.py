"""Does the server serve the kinds that the configured plugins read?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mooring.base.errors import ApiError, MooringError
from mooring.base.nesting import decode
from mooring.client import ApiClient
from mooring.client.recorder import EVENTS
from mooring.doctor.findings import Finding, bad, good, notice, unknown
from mooring.doctor.versions import SINCE
from mooring.framework.definitions import install_command
from mooring.objects import CustomResource
from mooring.objects.meta import Kind, KubeObject
from mooring.objects.pod_groups import PodGroup

CHECK = "kinds"
POD_GROUP_REMEDY = (
    "Start kube-apiserver with --feature-gates=GenericWorkload=true"
    f" --runtime-config={PodGroup.KIND.api_version}=true, or leave the gate off here."
)


class _Resource(msgspec.Struct):
    name: str


class _Served(msgspec.Struct):
    resources: list[_Resource] = []


Absent = frozenset[type[KubeObject]]


async def examine_kinds(
    client: ApiClient, readers: Mapping[type[KubeObject], Iterable[str]], plugins: Sequence[str] = ()
) -> tuple[list[Finding], Absent]:
    """What was found, and the kinds that the server lacks.

    `readers`: the plugins or other components that read each kind; `plugins`: where those come from that are not
    installed.
    """
    findings: list[Finding] = []
    served: dict[str, frozenset[str] | None] = {}
    for version in dict.fromkeys([kind.KIND.api_version for kind in readers] + [EVENTS.api_version]):
        try:
            served[version] = await _plurals(client, version)
        except MooringError as error:
            findings.append(unknown(CHECK, f"what {version} serves cannot be found out: {error}"))
    absent = frozenset(
        kind
        for kind in readers
        if (found := served.get(kind.KIND.api_version)) is not None and kind.KIND.plural not in found
    )
    findings += [_absent(kind, sorted(names), plugins) for kind, names in readers.items() if kind in absent]
    events = served.get(EVENTS.api_version)
    if events is not None and EVENTS.plural not in events:
        message = f"the server has no {EVENTS.name}; events are written in their older form"
        findings.append(notice(CHECK, message, "Nothing; `kubectl describe` shows both."))
    return findings or [good(CHECK, f"the server has all {len(readers)} kinds that are read")], absent


async def _plurals(client: ApiClient, api_version: str) -> frozenset[str]:
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    try:
        body = await client.transport.request("GET", path)
    except ApiError as error:
        if error.code == 404:
            return frozenset()
        raise
    return frozenset(resource.name for resource in decode(body, _Served).resources)


def _absent(kind: type[KubeObject], names: list[str], plugins: Sequence[str]) -> Finding:
    who = ", ".join(names)
    shown = _shown(kind.KIND)
    if issubclass(kind, CustomResource):
        message = f"the server has no {shown}; pods of profiles with {who} wait until it has"
        return bad(CHECK, message, f"Install its definition: {install_command(names[0], plugins)}")
    if kind is PodGroup:
        message = f"the server has no {shown}; pods that name a group are not scheduled as one"
        return bad(CHECK, message, POD_GROUP_REMEDY)
    since = SINCE.get(kind.KIND)
    message = f"the server has no {shown}; {who} treats it as an empty list"
    when = f"Kubernetes {since} and later has it" if since else "Kubernetes has it"
    return notice(CHECK, message, f"Nothing, if no pod needs it; otherwise upgrade or switch the API on: {when}.")


def _shown(kind: Kind) -> str:
    return f"{kind.name} ({kind.version})"
