"""Each thing that can be wrong with a cluster is named, with what to do about it."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from typing import Any

import pytest
from tests.deploy.configurations import a_configuration
from tests.doctor.conftest import http_date

from mooring.base.clock import ManualClock, micro_timestamp, timestamp
from mooring.client import Impersonation
from mooring.doctor import CheckStatus, contact
from mooring.doctor.findings import is_well
from mooring.doctor.versions import ServerVersion, read_version
from mooring.framework import Cycle, FeatureGates, NodeView, Plugin, Pod, PodWriter
from mooring.objects import CustomResource
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.introspection.foreign_bindings import BOUND_BY_ANOTHER, WHAT_TO_DO


class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Cluster"):
    spec: dict[str, int] = {}


class Diary(Plugin):
    def __init__(self, pods: PodWriter) -> None: ...
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...


async def only(found: Any) -> Any:
    (finding,) = await found
    return finding


async def test_nothing_is_wrong_with_a_cluster_that_has_everything(findings):
    for check in ("server", "tls", "version", "clock", "kinds", "rights", "schedulers"):
        finding = await only(findings(check))
        assert finding.verdict is CheckStatus.GOOD, finding
        assert not finding.to_do


class TestContact:
    async def test_nothing_listens(self, findings):
        finding = await only(findings("server", server="https://127.0.0.1:1"))
        assert finding.verdict is CheckStatus.BAD
        assert "127.0.0.1:1" in finding.message
        assert "connection refused" in finding.message
        assert "a test" in finding.to_do
        assert await findings("rights", server="https://127.0.0.1:1") == []

    async def test_the_certificate_is_not_trusted(self, findings):
        finding = await only(findings("server", ca_data=None))
        assert finding.verdict is CheckStatus.BAD
        assert "not trusted" in finding.message

    @pytest.mark.parametrize(
        ("code", "message", "to_do"),
        [
            (401, "does not accept the credentials", "Renew"),
            (403, "refuses", "system:public-info-viewer"),
            (404, "is no API server", "Correct the server's address"),
            (503, "responds 503", "load balancer"),
        ],
    )
    async def test_the_server_does_not_let_us_in(self, cluster, findings, code, message, to_do):
        cluster.codes["/version"] = code
        finding = await only(findings("server"))
        assert finding.verdict is CheckStatus.BAD
        assert message in finding.message
        assert to_do in finding.to_do

    async def test_impersonation_is_forbidden(self, cluster, findings):
        cluster.codes["/version"] = 403
        cluster.words = 'User "u" cannot impersonate resource "users"'
        finding = await only(findings("server", impersonate=Impersonation("another")))
        assert finding.message.startswith("the user may not impersonate another")
        assert "administrator" in finding.to_do

    async def test_an_unverified_certificate_is_noticed(self, findings):
        finding = await only(findings("tls", insecure_skip_tls_verify=True, ca_data=None))
        assert finding.verdict is CheckStatus.NOTICE
        assert "insecure-skip-tls-verify" in finding.to_do

    async def test_a_certificate_that_ends_soon_is_noticed(self, findings, its_authority, monkeypatch):
        monkeypatch.setattr(contact, "ENDS_SOON", timedelta(days=100))
        found = await findings("tls", client_cert_data=its_authority.client, client_key_data=its_authority.client_key)
        assert [finding.message.partition(" ends on ")[0] for finding in found] == [
            "the server's certificate",
            "our client certificate",
        ]
        assert all(finding.verdict is CheckStatus.NOTICE for finding in found)

    @pytest.mark.parametrize(
        ("seconds", "verdict", "message"),
        [
            (0, CheckStatus.GOOD, "agree"),
            (20, CheckStatus.NOTICE, "20 s ahead of ours"),
            (-20, CheckStatus.NOTICE, "s behind ours"),
            (3600, CheckStatus.BAD, "s ahead of ours"),
        ],
    )
    async def test_the_clocks(self, cluster, findings, clock, seconds, verdict, message):
        cluster.headers["Date"] = http_date(clock, seconds)
        finding = await only(findings("clock"))
        assert finding.verdict is verdict, finding
        assert message in finding.message or "19 s ahead" in finding.message
        assert bool(finding.to_do) == (verdict is not CheckStatus.GOOD)

    @pytest.mark.parametrize(
        ("minor", "verdict", "message"),
        [
            ("36", CheckStatus.GOOD, "Kubernetes v1.36.0"),
            ("33+", CheckStatus.GOOD, "it has no devices by claims"),
            ("26", CheckStatus.GOOD, "it has no scheduling gates, no in-place pod resize, no devices by claims"),
            ("19", CheckStatus.BAD, "older than 1.24"),
            ("40", CheckStatus.NOTICE, "newer than 1.36"),
        ],
    )
    async def test_the_version(self, cluster, findings, minor, verdict, message):
        cluster.version = {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"}
        finding = await only(findings("version"))
        assert finding.verdict is verdict
        assert message in finding.message


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ({"major": "1", "minor": "34+"}, ServerVersion(1, 34)),
        ({"major": "", "minor": "", "gitVersion": "v1.31.2-eks-1"}, ServerVersion(1, 31)),
        ({"major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "33"}, ServerVersion(1, 33)),
        ({}, None),
    ],
)
def test_versions_are_read_as_providers_write_them(document, version):
    assert read_version(document) == version


class TestKinds:
    async def test_a_built_in_kind_that_an_older_server_lacks(self, cluster, findings):
        del cluster.served["/apis/resource.k8s.io/v1"]
        cluster.version["minor"] = "33"
        found = await findings("kinds")
        assert {finding.verdict for finding in found} == {CheckStatus.NOTICE}
        assert any("ResourceClaim" in each.message or "resourceclaims" in each.message for each in found)
        assert all("Kubernetes 1.34 and later" in finding.to_do for finding in found)

    async def test_rights_to_what_the_server_lacks_are_not_reviewed(self, cluster, findings):
        del cluster.served["/apis/resource.k8s.io/v1"]
        cluster.allows = lambda attributes: attributes["group"] != "resource.k8s.io"
        assert (await only(findings("rights"))).verdict is CheckStatus.GOOD

    async def test_a_custom_kind_that_is_not_defined(self, findings, plan, monkeypatch):
        monkeypatch.setattr(type(plan), "readers", lambda _: {Quota: {"QuotaFit"}})
        finding = await only(findings("kinds"))
        assert finding.verdict is CheckStatus.BAD
        assert "quotas.example.com" in finding.message
        assert "QuotaFit" in finding.message
        assert "mooring crd generate QuotaFit | kubectl apply" in finding.to_do
        finding = await only(findings("kinds", dataclasses.replace(plan, plugins=("my plugins/quota.py", "a:B"))))
        assert "mooring crd generate QuotaFit --plugins 'my plugins/quota.py' --plugins a:B | kub" in finding.to_do


class TestRights:
    async def test_each_rule_that_is_missing_is_named_with_who_needs_it(self, cluster, findings):
        def allows(attributes):
            return attributes.get("subresource") != "binding" or attributes["resource"] != "pods"

        cluster.allows = allows
        finding = await only(findings("rights"))
        assert finding.verdict is CheckStatus.BAD
        assert finding.message == '"operator" may not create pods/binding (for DefaultBinder)'
        assert '{apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}' in finding.to_do
        assert "ClusterRole" in finding.to_do
        assert "mooring manifests" in finding.to_do

    async def test_patching_pods_is_missed_only_where_a_plugin_writes_to_them(self, cluster, findings, plan):
        cluster.allows = lambda attributes: (
            attributes["verb"] != "patch" or attributes["resource"] != "pods" or "subresource" in attributes
        )
        assert (await only(findings("rights"))).verdict is CheckStatus.GOOD
        registry = catalogue()
        registry.add(Diary, "test")
        configuration = a_configuration(registry, enabled=["Diary"])
        writing = dataclasses.replace(plan, configuration=configuration, registry=registry)
        finding = await only(findings("rights", writing))
        assert finding.message == '"operator" may not patch pods (for Diary)'
        assert '{apiGroups: [""], resources: ["pods"], verbs: ["patch"]}' in finding.to_do

    async def test_one_that_only_serves_to_name_others_is_no_failure(self, cluster, findings):
        cluster.allows = lambda attributes: (attributes["resource"], attributes["verb"]) != ("events", "list")
        finding = await only(findings("rights"))
        assert finding.verdict is CheckStatus.NOTICE
        assert finding.message == '"operator" may not list events (for naming another scheduler that binds these pods)'

    async def test_kube_schedulers_account_gets_them_from_a_replacement(self, cluster, findings):
        cluster.user = "system:kube-scheduler"
        cluster.allows = lambda attributes: (attributes["resource"], attributes["verb"]) != ("events", "list")
        finding = await only(findings("rights"))
        assert finding.to_do.endswith("mooring manifests --as replacement --output FOLDER (in its rbac.yaml)")

    async def test_how_to_get_them_all_is_reported_once_at_the_end(self, cluster, findings):
        cluster.allows = lambda _: False
        found = await findings("rights")
        assert len(found) > 10
        assert ["mooring manifests" in finding.to_do for finding in found] == [False] * (len(found) - 1) + [True]

    async def test_they_are_written_for_the_account_that_lacks_them(self, cluster, findings):
        cluster.user = "system:serviceaccount:ours:second"
        cluster.allows = lambda attributes: attributes.get("subresource") != "binding"
        *_, last = await findings("rights")
        assert last.to_do.endswith("All rules: mooring manifests --namespace ours --name second")

    async def test_a_right_in_a_namespace_and_on_one_name_is_shown_as_such(self, cluster, findings):
        cluster.allows = lambda attributes: attributes["resource"] != "leases" or attributes["verb"] == "create"
        finding = await only(findings("rights"))
        assert 'may not get, update leases.coordination.k8s.io "kube-scheduler"' in finding.message
        assert 'Role in namespace "kube-system"' in finding.to_do
        assert 'resourceNames: ["kube-scheduler"]' in finding.to_do

    @pytest.mark.parametrize(
        ("user", "is_lease_named", "lease"),
        [
            ("system:serviceaccount:mooring-system:mooring", False, "mooring"),
            ("system:serviceaccount:mooring-system:mooring", True, "kube-scheduler"),
            ("system:kube-scheduler", False, "kube-scheduler"),
        ],
    )
    async def test_an_account_of_the_manifests_has_the_lease_that_they_give_it(
        self, cluster, findings, plan, user, is_lease_named, lease
    ):
        cluster.user = user
        cluster.allows = lambda attributes: (
            attributes.get("name", lease) in (lease, "extension-apiserver-authentication")
        )
        finding = await only(findings("rights", dataclasses.replace(plan, is_lease_named=is_lease_named)))
        assert finding.verdict is CheckStatus.GOOD, finding

    async def test_what_a_role_of_every_cluster_grants_is_a_matter_of_binding(self, cluster, findings):
        cluster.allows = lambda attributes: attributes["resource"] != "configmaps"
        finding = await only(findings("rights"))
        assert finding.to_do.startswith("Bind it to the Role extension-apiserver-authentication-reader in kube-system")

    async def test_a_shadow_needs_only_to_read(self, cluster, findings, plan):
        cluster.allows = lambda attributes: attributes["verb"] in ("list", "watch")
        election = dataclasses.replace(plan.election, leader_elect=False)
        shadow = dataclasses.replace(plan, only_reads=True, serves=False, election=election)
        assert (await only(findings("rights", shadow))).verdict is CheckStatus.GOOD
        assert not is_well(await findings("rights"))
        assert await findings("lease", shadow) == []

    async def test_a_server_that_does_not_review_rights(self, cluster, findings):
        cluster.codes["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = 403
        finding = await only(findings("rights"))
        assert finding.verdict is CheckStatus.UNKNOWN
        assert "system:basic-user" in finding.to_do


class TestLease:
    def lease(self, clock: ManualClock, holder: str, seconds_ago: float) -> dict[str, Any]:
        renewed = micro_timestamp(clock.now() - seconds_ago)
        return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}}

    async def test_no_scheduler_holds_it(self, cluster, findings, clock):
        assert (await only(findings("lease"))).verdict is CheckStatus.GOOD
        cluster.lease = self.lease(clock, "", 1)
        assert "no scheduler holds" in (await only(findings("lease"))).message

    async def test_a_scheduler_holds_it(self, cluster, findings, clock):
        cluster.lease = self.lease(clock, "host_1", 3)
        finding = await only(findings("lease"))
        assert finding.verdict is CheckStatus.NOTICE
        assert "host_1 holds the lease kube-system/kube-scheduler" in finding.message
        assert "leaderElection.resourceName" in finding.to_do

    async def test_its_holder_is_gone(self, cluster, findings, clock):
        cluster.lease = self.lease(clock, "host_1", 300)
        finding = await only(findings("lease"))
        assert finding.verdict is CheckStatus.NOTICE
        assert "host_1" in finding.message
        assert "has not renewed it for 30" in finding.message

    async def test_the_servers_clock_counts(self, cluster, findings, clock):
        cluster.headers["Date"] = http_date(clock, -290)
        cluster.lease = self.lease(clock, "host_1", 293)
        assert "stands by" in (await only(findings("lease"))).message

    async def test_without_an_election_two_would_bind(self, findings, plan):
        alone = dataclasses.replace(plan, election=dataclasses.replace(plan.election, leader_elect=False))
        finding = await only(findings("lease", alone))
        assert finding.verdict is CheckStatus.NOTICE
        assert "leaderElection.leaderElect" in finding.to_do

    async def test_it_may_not_be_read(self, cluster, findings):
        cluster.codes["/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"] = 403
        assert (await only(findings("lease"))).verdict is CheckStatus.UNKNOWN


class TestOtherSchedulers:
    def scheduled(self, instance: str, second: int, controller: str = "default-scheduler") -> dict[str, Any]:
        return {
            "reason": "Scheduled",
            "reportingComponent": controller,
            "reportingInstance": instance,
            "eventTime": f"2026-01-01T00:00:{second:02}.000000Z",
        }

    async def test_two_at_the_same_time_are_named(self, cluster, findings):
        cluster.events = [self.scheduled("a", 1), self.scheduled("b", 2), self.scheduled("a", 3)]
        cluster.events += [self.scheduled("b", 4), self.scheduled("c", 2, "another-scheduler")]
        finding = await only(findings("schedulers"))
        assert finding.verdict is CheckStatus.NOTICE
        assert finding.message == "a and b bind pods with schedulerName default-scheduler at the same time"
        assert "another schedulerName" in finding.to_do

    async def test_one_that_took_over_the_lease_is_no_conflict(self, cluster, findings, clock):
        cluster.lease = TestLease().lease(clock, "b_4711", 1)
        cluster.events = [self.scheduled(name, second) for second, name in enumerate(["a", "a", "default-scheduler-b"])]
        assert (await only(findings("schedulers"))).verdict is CheckStatus.GOOD

    @pytest.mark.parametrize("holder", ["", "elsewhere_4711"], ids=["no holder", "another holder"])
    async def test_one_alone_that_does_not_hold_the_lease_is_named(self, cluster, findings, clock, holder):
        if holder:
            cluster.lease = TestLease().lease(clock, holder, 1)
        bound_at = clock.now() - 20
        event = self.scheduled("default-scheduler-node", 1) | {"eventTime": timestamp(bound_at)}
        cluster.events = [self.scheduled("gone", 1), event, self.scheduled("x", 1, "another-scheduler")]
        finding = await only(findings("schedulers"))
        assert finding.verdict is CheckStatus.NOTICE
        assert re.fullmatch(
            r"default-scheduler-node bound pods with schedulerName default-scheduler 2[01] s ago", finding.message
        )
        assert finding.to_do.startswith(
            "Nothing, if that is this scheduler, or the one that it replaces. Otherwise: Give"
        )

    async def test_one_that_bound_long_ago_is_named_with_the_minutes(self, cluster, findings, clock):
        cluster.events = [self.scheduled("default-scheduler-node", 1) | {"eventTime": timestamp(clock.now() - 600)}]
        assert "10 minutes ago" in (await only(findings("schedulers"))).message

    async def test_two_on_one_host_are_known_by_the_schedulers_event(self, cluster, findings):
        cluster.events = [self.scheduled("a", second) for second in range(4)]
        cluster.events += [
            {
                "reason": BOUND_BY_ANOTHER,
                "reportingComponent": profile,
                "eventTime": f"2026-01-01T00:00:{second:02}.000000Z",
                "involvedObject": {"namespace": "shop", "name": pod},
                "message": f"Bound to node-1 by another. {WHAT_TO_DO}.",
            }
            for profile, second, pod in [
                ("default-scheduler", 1, "old"),
                ("default-scheduler", 2, "web"),
                ("x", 3, "y"),
            ]
        ]
        finding = await only(findings("schedulers"))
        assert finding.verdict is CheckStatus.NOTICE
        assert finding.message == "the scheduler reports about pod shop/web: Bound to node-1 by another."
        assert "another schedulerName" in finding.to_do

    async def test_events_may_not_be_read(self, cluster, findings):
        cluster.codes["/api/v1/events"] = 403
        assert (await only(findings("schedulers"))).verdict is CheckStatus.UNKNOWN


async def test_a_server_without_pod_groups_is_reported_where_the_gate_is_on(findings, plan):
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    finding = await only(findings("kinds", dataclasses.replace(plan, gates=gates)))
    assert finding.verdict is CheckStatus.BAD
    assert "podgroups.scheduling.k8s.io (v1alpha2)" in finding.message
    assert "--runtime-config=scheduling.k8s.io/v1alpha2=true" in finding.to_do


WITH_CLAIMS = FeatureGates({"GenericWorkload": True, "DRAWorkloadResourceClaims": True})
OF_A_SERVER = """\
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{{name="DRAWorkloadResourceClaims",stage="ALPHA"}} {claims}
kubernetes_feature_enabled{{name="WorkloadAwarePreemption",stage="ALPHA"}} 0
"""
SERVED_GROUPS = ("/apis/scheduling.k8s.io/v1alpha2", ["podgroups"])


@pytest.mark.parametrize(
    ("claims", "verdict", "message"),
    [
        (1, CheckStatus.GOOD, "the API server has DRAWorkloadResourceClaims on, too"),
        (0, CheckStatus.NOTICE, "the API server has DRAWorkloadResourceClaims off: it drops resourceClaims"),
    ],
)
async def test_a_gate_that_is_off_in_the_server_is_named(findings, plan, cluster, claims, verdict, message):
    cluster.served.update([SERVED_GROUPS])
    cluster.metrics = OF_A_SERVER.format(claims=claims)
    finding = await only(findings("gates", dataclasses.replace(plan, gates=WITH_CLAIMS)))
    assert finding.verdict is verdict
    assert finding.message.startswith(message)
    assert ("--feature-gates=DRAWorkloadResourceClaims=true" in finding.to_do) is (claims == 0)


async def test_gates_of_a_server_that_cannot_be_read_are_skipped_with_the_reason(findings, plan, cluster):
    cluster.served.update([SERVED_GROUPS])
    cluster.metrics = 'kubernetes_feature_enabled{name="GenericWorkload",stage="ALPHA"} 1\n'
    planned = dataclasses.replace(plan, gates=WITH_CLAIMS)

    finding = await only(findings("gates", planned))
    assert (finding.verdict, finding.to_do) == (CheckStatus.UNKNOWN, "")
    assert finding.message.endswith("cannot be found out: its /metrics do not name them")

    cluster.metrics = None
    assert (await only(findings("gates", planned))).message.endswith("cannot be found out: it has no /metrics")

    cluster.codes["/metrics"] = 403
    finding = await only(findings("gates", planned))
    assert finding.verdict is CheckStatus.UNKNOWN
    assert "system:monitoring" in finding.to_do


async def test_gates_of_a_server_do_not_matter_where_they_are_off_here_or_it_has_no_pod_groups(findings, plan, cluster):
    cluster.metrics = OF_A_SERVER.format(claims=0)
    assert not await findings("gates", dataclasses.replace(plan, gates=WITH_CLAIMS))
    cluster.served.update([SERVED_GROUPS])
    assert not await findings("gates", dataclasses.replace(plan, gates=FeatureGates({"GenericWorkload": True})))


async def test_a_server_with_pod_groups_is_fine_where_the_gate_is_on(findings, plan, cluster):
    cluster.served.update([SERVED_GROUPS])
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    assert (await only(findings("kinds", dataclasses.replace(plan, gates=gates)))).verdict is CheckStatus.GOOD
