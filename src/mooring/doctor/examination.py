"""All checks, in the order in which they depend on each other: no requests to a server that does not respond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mooring.client import ApiClient
from mooring.config import Configuration, LeaderElection
from mooring.deploy import Mode, Right, rights_of
from mooring.deploy.planned import flags_for
from mooring.deploy.rights import POD_GROUPS
from mooring.doctor.contact import make_contact
from mooring.doctor.findings import Finding
from mooring.doctor.kinds import Absent, examine_kinds
from mooring.doctor.lease import examine_lease
from mooring.doctor.load_sources import examine_load_sources
from mooring.doctor.other_schedulers import examine_other_schedulers
from mooring.doctor.rights import AUTHENTICATION, examine_rights, own_name
from mooring.doctor.server_gates import examine_server_gates
from mooring.doctor.versions import RESOURCES_SINCE, ServerVersion
from mooring.framework.gates import FeatureGates
from mooring.framework.registry import Registry
from mooring.objects import CustomResource
from mooring.objects.core import Node, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.pod_groups import PodGroup

KUBE_SCHEDULERS_ACCOUNT = "system:kube-scheduler"
SERVICE_ACCOUNT = "system:serviceaccount:"
LEASE_FLAG = "--leader-elect-resource-name="


@dataclass(frozen=True)
class PlannedScheduler:
    """The scheduler that is planned."""

    configuration: Configuration
    registry: Registry
    election: LeaderElection
    gates: FeatureGates
    serves: bool = True
    """It serves metrics over HTTPS, and has the cluster review who may read them."""
    only_reads: bool = False
    """Shadow mode."""
    is_lease_named: bool = False
    """The command line names the lease."""
    plugins: tuple[str, ...] = ()
    """Where plugins come from besides those that are installed, as given on the command line."""
    remedy: str = ""
    """The command that writes missing rules, for the account that it names itself."""

    @property
    def profiles(self) -> list[str]:
        return [profile.scheduler_name for profile in self.configuration.profiles]

    def readers(self) -> dict[type[KubeObject], set[str]]:
        """Which plugins read which kind."""
        found: dict[type[KubeObject], set[str]] = {Node: {"the scheduler"}, Pod: {"the scheduler"}}
        if self.gates.on("GenericWorkload"):
            found[PodGroup] = {POD_GROUPS}
        for name in self._plugins():
            entry = self.registry.get(name)
            assert entry is not None, "the configuration was checked against this registry"
            for kind in entry.object_types:
                found.setdefault(kind, set()).add(name)
        return found

    def election_of(self, user: str | None) -> LeaderElection:
        """The election of the manifests, if the user is an account of theirs: the lease has the account's name."""
        kind, _, name = (user or "").rpartition(":")
        if self.is_lease_named or not kind.startswith(SERVICE_ACCOUNT):
            return self.election
        mode = Mode.SHADOW if self.only_reads else Mode.SECOND_SCHEDULER
        for flag in flags_for(mode, self.configuration, name, verbosity=0):
            if flag.startswith(LEASE_FLAG):
                return replace(self.election, resource_name=flag.removeprefix(LEASE_FLAG))
        return self.election

    def remedy_for(self, user: str | None) -> str:
        """The same for this user, if it is an account that manifests can name."""
        if user == KUBE_SCHEDULERS_ACCOUNT and not self.only_reads:
            return f"{self.remedy} --as replacement --output FOLDER (in its rbac.yaml)"
        if not (user or "").startswith(SERVICE_ACCOUNT):
            return self.remedy
        namespace, _, name = (user or "").removeprefix(SERVICE_ACCOUNT).partition(":")
        return f"{self.remedy} --namespace {namespace} --name {name}"

    def _plugins(self) -> Iterator[str]:
        for profile in self.configuration.profiles:
            for uses in profile.points.values():
                yield from (use.name for use in uses)


async def examine(client: ApiClient, plan: PlannedScheduler) -> list[Finding]:
    """Everything that can be found out without changing anything."""
    contact = await make_contact(client)
    findings = list(contact.findings)
    if not contact.is_made:
        return findings
    about_kinds, absent = await examine_kinds(client, plan.readers(), plan.plugins)
    findings += about_kinds
    if PodGroup not in absent:
        findings += await examine_server_gates(client, plan.gates)
    user = await own_name(client)
    election = plan.election_of(user)
    rights = rights_of(
        plan.configuration,
        plan.registry,
        gates=plan.gates,
        election=election,
        serves=plan.serves,
        only_reads=plan.only_reads,
    )
    needed = [right for right in rights if _is_used(right, contact.version, absent)]
    if plan.serves:
        needed.append(AUTHENTICATION)
    findings += await examine_rights(client, user, needed, plan.remedy_for(user))
    findings += await examine_load_sources(client, plan.configuration)
    holder = ""
    if election.leader_elect or not plan.only_reads:
        about_lease, holder = await examine_lease(client, election, contact.ahead_seconds)
        findings.append(about_lease)
    if not plan.only_reads:
        findings += await examine_other_schedulers(client, plan.profiles, holder, contact.ahead_seconds)
    return findings


def _is_used(right: Right, version: ServerVersion | None, absent: Absent) -> bool:
    """What a server does not have is not requested; a definition that is missing may still be installed."""
    if right.resource in RESOURCES_SINCE and version is not None and version < RESOURCES_SINCE[right.resource]:
        return False
    plural = right.resource.partition("/")[0]
    return not any(
        (kind.KIND.group, kind.KIND.plural) == (right.group, plural)
        for kind in absent
        if not issubclass(kind, CustomResource)
    )
