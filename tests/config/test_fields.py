"""The fields of the file beside profiles: defaults, types, ranges."""

from __future__ import annotations

import pytest
from tests.config.default_plugins import EVERYTHING
from tests.config.files import a_file, configuration, load, mistakes

from mooring.config import ClientConnection, LeaderElection, default_configuration
from mooring.framework import FeatureGates


def test_an_empty_file_has_kube_schedulers_defaults():
    found = configuration(a_file())
    assert (found.parallelism, found.pod_initial_backoff_seconds, found.pod_max_backoff_seconds) == (16, 1, 10)
    assert found.leader_election == LeaderElection(True, False, 15, 10, 2, "leases", "kube-scheduler", "kube-system")
    assert found.client_connection == ClientConnection()
    assert (found.enable_profiling, found.enable_contention_profiling) == (True, True)
    assert (found.delay_cache_until_active, found.extenders) == (False, ())
    assert [profile.scheduler_name for profile in found.profiles] == ["default-scheduler"]
    assert found == default_configuration(EVERYTHING)


@pytest.mark.parametrize("text", ["", "# nothing", "null"])
def test_the_error_of_an_empty_file_names_what_it_must_hold(text):
    assert mistakes(text) == {"the file": "is empty; it must hold a KubeSchedulerConfiguration"}


def test_every_field_is_read():
    found = configuration(
        a_file(
            parallelism=4,
            percentageOfNodesToScore=0,
            podInitialBackoffSeconds=2,
            podMaxBackoffSeconds=2,
            enableProfiling=False,
            delayCacheUntilActive=True,
            leaderElection={
                "leaderElect": True,
                "leaseDuration": "1m0s",
                "renewDeadline": "30s",
                "retryPeriod": "1500ms",
                "resourceLock": "leases",
                "resourceName": "mooring",
                "resourceNamespace": "system",
            },
            clientConnection={
                "kubeconfig": "/etc/kubeconfig",
                "acceptContentTypes": "application/json",
                "contentType": "application/json",
                "qps": 0.5,
                "burst": 7,
            },
        )
    )
    assert (found.parallelism, found.percentage_of_nodes_to_score) == (4, 0)
    assert (found.enable_profiling, found.enable_contention_profiling) == (False, False)
    assert found.delay_cache_until_active
    assert found.leader_election == LeaderElection(True, True, 60, 30, 1.5, "leases", "mooring", "system")
    assert found.client_connection == ClientConnection(
        "/etc/kubeconfig", "application/json", "application/json", 0.5, 7
    )


def test_an_absent_percentage_differs_from_an_explicit_zero():
    assert configuration(a_file()).percentage_of_nodes_to_score is None
    assert configuration(a_file(percentageOfNodesToScore=0)).percentage_of_nodes_to_score == 0


def test_null_means_absent():
    found = configuration(a_file(parallelism=None, leaderElection=None, profiles=None))
    assert found == default_configuration(EVERYTHING)


def test_a_defaulted_leader_election_differs_from_an_explicit_one():
    assert not configuration(a_file()).leader_election.explicit
    assert configuration(a_file(leaderElection={"leaderElect": True})).leader_election.explicit


def test_zero_reads_as_not_set_where_it_does_upstream():
    found = configuration(
        a_file(clientConnection={"qps": 0, "burst": 0}, leaderElection={"leaseDuration": "0s", "resourceName": ""})
    )
    assert (found.client_connection.qps, found.client_connection.burst) == (None, None)
    assert found.leader_election.lease_duration_seconds == 15
    assert found.leader_election.resource_name == "kube-scheduler"


def test_without_leader_election_its_settings_are_not_checked():
    settings = {"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "configmaps"}
    found = configuration(a_file(leaderElection=settings)).leader_election
    assert (found.leader_elect, found.resource_lock) == (False, "configmaps")
    assert "leaderElection.leaseDuration" in mistakes(a_file(leaderElection={**settings, "leaderElect": True}))


WRONG = {
    "no parallelism": ({"parallelism": 0}, "parallelism", "should be an integer value greater than zero, got 0"),
    "too many bits": ({"parallelism": 2**31}, "parallelism", "must fit in 32 bits"),
    "a word for a number": ({"parallelism": "many"}, "parallelism", 'must be a whole number, got "many"'),
    "true for a number": ({"parallelism": True}, "parallelism", "must be a whole number, got true"),
    "a fraction of a number": ({"parallelism": 1.5}, "parallelism", "must be a whole number, got 1.5"),
    "a percentage too high": (
        {"percentageOfNodesToScore": 101},
        "percentageOfNodesToScore",
        "not in valid range [0-100]",
    ),
    "a percentage below zero": (
        {"percentageOfNodesToScore": -1},
        "percentageOfNodesToScore",
        "not in valid range [0-100]",
    ),
    "no initial backoff": (
        {"podInitialBackoffSeconds": 0},
        "podInitialBackoffSeconds",
        "must be greater than 0, got 0",
    ),
    "a backoff that shrinks": (
        {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
        "podMaxBackoffSeconds",
        "must be greater than or equal to PodInitialBackoffSeconds (5), got 4",
    ),
    "an initial backoff beyond the default maximum": (
        {"podInitialBackoffSeconds": 11},
        "podMaxBackoffSeconds",
        "got 10 by default",
    ),
    "text for true or false": ({"enableProfiling": "yes"}, "enableProfiling", 'must be true or false, got "yes"'),
    "a number for text": (
        {"clientConnection": {"kubeconfig": 5}},
        "clientConnection.kubeconfig",
        'must be a string, got 5; write "5"',
    ),
    "a negative burst": ({"clientConnection": {"burst": -1}}, "clientConnection.burst", "must be non-negative, got -1"),
    "text for a rate": ({"clientConnection": {"qps": "5"}}, "clientConnection.qps", "must be a number"),
    "a section that is a list": ({"leaderElection": []}, "leaderElection", "must be a mapping, got a list"),
    "profiles that are a mapping": ({"profiles": {}}, "profiles", "must be a list, got a mapping"),
    "a profile that is a word": ({"profiles": ["mine"]}, "profiles[0]", 'must be a mapping, got "mine"'),
    "a duration without unit": (
        {"leaderElection": {"retryPeriod": 2}},
        "leaderElection.retryPeriod",
        'must be a duration such as "15s"',
    ),
    "a lease below zero": (
        {"leaderElection": {"leaseDuration": "-1s"}},
        "leaderElection.leaseDuration",
        "must be greater than zero",
    ),
    "a lease shorter than its renewal": (
        {"leaderElection": {"leaseDuration": "10s"}},
        "leaderElection.leaseDuration",
        "must be greater than renewDeadline (10s), got 10s",
    ),
    "a renewal shorter than a retry": (
        {"leaderElection": {"renewDeadline": "2400ms"}},
        "leaderElection.renewDeadline",
        "must be greater than 1.2 × retryPeriod",
    ),
    "a lock of old": (
        {"leaderElection": {"resourceLock": "endpointsleases"}},
        "leaderElection.resourceLock",
        'resourceLock value must be "leases", got "endpointsleases"',
    ),
    "an unknown field": ({"paralelism": 1}, "paralelism", 'unknown field "paralelism". Did you mean "parallelism"?'),
    "an unknown field of a section": ({"leaderElection": {"x": 1}}, "leaderElection.x", "Known here: leaderElect,"),
    "a field in other letters": ({"Parallelism": 1}, "Parallelism", 'Did you mean "parallelism"?'),
    "a field of old versions": ({"healthzBindAddress": ""}, "healthzBindAddress", "unknown field"),
}


@pytest.mark.parametrize(("fields", "path", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_names_its_field_and_what_would_be_right(fields, path, message):
    found = mistakes(a_file(**fields))
    assert list(found) == [path]
    assert message in found[path]


def test_all_mistakes_come_at_once_in_the_order_of_the_file_with_their_lines():
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "- schedulerName: a\n"
        "  plugins: {score: {enabled: [{name: NodeResourceFit}]}}\n"
        "  pluginConfig:\n"
        "  - name: ScoreByLabel\n"
        "    args:\n"
        "      keepPercent: 140\n"
        "parallelism: 0\n"
    )
    with pytest.raises(Exception, match=r"scheduler\.yaml has 3 problems\.") as mistake:
        load(text)
    assert str(mistake.value).splitlines()[1:] == [
        "",
        "  profiles[0].plugins.score.enabled[0].name (line 5)",
        '    ScorePlugin "NodeResourceFit" does not exist: it is not a known plugin. Did you mean "NodeResourcesFit"?',
        "",
        "  profiles[0].pluginConfig[0].args.keepPercent (line 9)",
        "    must be between 0 and 100, got 140",
        "",
        "  parallelism (line 10)",
        "    should be an integer value greater than zero, got 0",
    ]


HEADERS = {
    "no header": ("a: 1\n", {"kind", "apiVersion"}),
    "another kind": ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod\n", {"kind"}),
    "a Policy": ("apiVersion: v1\nkind: Policy\n", {"kind"}),
    "another group": ("apiVersion: v1\nkind: KubeSchedulerConfiguration\n", {"apiVersion"}),
    "a version of before": (
        "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n",
        {"apiVersion"},
    ),
    "a number for a version": ("apiVersion: 1\nkind: KubeSchedulerConfiguration\n", {"apiVersion"}),
    "a list": ("- a\n", {"the file"}),
    "a word": ("hello", {"the file"}),
}


@pytest.mark.parametrize(("text", "paths"), HEADERS.values(), ids=HEADERS.keys())
def test_a_file_of_another_kind_is_reported_as_that_only(text, paths):
    assert set(mistakes(text)) == paths


def test_a_default_plugin_whose_gate_is_off_takes_no_part():
    gates = FeatureGates({"NodeDeclaredFeatures": False})
    used = default_configuration(EVERYTHING, gates).profiles[0].used_plugins
    assert "NodeDeclaredFeatures" in default_configuration(EVERYTHING).profiles[0].used_plugins
    assert "NodeDeclaredFeatures" not in used
