"""`mooring manifests` as it is called: what it writes for each mode, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.command import Result, manifests, printed, refused
from tests.deploy.configurations import a_file

from mooring import __version__

PLUGIN = """
from mooring.framework import Objects, Plugin
from mooring.objects.workloads import Service


class Quiet(Plugin):
    def __init__(self, services: Objects[Service]) -> None: ...

    def score(self, pod, node, cycle):
        return 0
"""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(**fields: Any) -> str:
    Path("scheduler.yaml").write_text(json.dumps(a_file(**fields)), encoding="utf-8")
    return "--config=scheduler.yaml"


def written(*arguments: str) -> dict[tuple[str, str], Any]:
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(printed(*arguments))}


def container(documents: dict[tuple[str, str], Any], name: str = "mooring") -> Any:
    return documents["Deployment", name]["spec"]["template"]["spec"]["containers"][0]


ALONE = {"leaderElection": {"leaderElect": False}}


def test_a_second_scheduler_has_a_lease_of_its_own_and_two_replicas():
    documents = written(config())
    assert "--leader-elect-resource-name=mooring" in container(documents)["args"]
    role = documents["Role", "mooring:mooring"]
    assert role["metadata"]["namespace"] == "kube-system"
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, None, ["mooring"]]
    assert documents["Deployment", "mooring"]["spec"]["replicas"] == 2


def test_a_lease_that_the_file_names_is_kept():
    named = {"leaderElection": {"leaderElect": True, "resourceName": "mine", "resourceNamespace": "there"}}
    documents = written(config(**named))
    assert not [flag for flag in container(documents)["args"] if "leader" in flag]
    role = documents["Role", "mooring:mooring"]
    assert (role["metadata"]["namespace"], role["rules"][2]["resourceNames"]) == ("there", ["mine"])


@pytest.mark.parametrize("flags", [(), ("--", "--leader-elect=false")], ids=["by the file", "by a flag"])
def test_without_an_election_there_is_one_replica_and_no_right_to_a_lease(flags):
    documents = written(config(**({} if flags else ALONE)), *flags)
    spec = documents["Deployment", "mooring"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert ("Role", "mooring:mooring") not in documents


def test_it_is_called_after_its_first_profile():
    documents = written(config(name="My.Scheduler"))
    assert ("Deployment", "my-scheduler") in documents


def test_a_namespace_that_every_cluster_has_is_not_written():
    assert ("Namespace", "kube-system") not in written(config(), "--namespace=kube-system")
    assert ("Namespace", "other") in written(config(), "--namespace=other")


def test_plugin_files_come_as_a_config_map_with_what_they_read():
    Path("quiet.py").write_text(PLUGIN, encoding="utf-8")
    documents = written(config(enabled=["Quiet"], disabled=["PodTopologySpread"]), "--plugins=quiet.py")
    assert documents["ConfigMap", "mooring-plugins"]["data"] == {"quiet.py": PLUGIN}
    assert "--plugins=/etc/mooring-plugins" in container(documents)["args"]
    rules = documents["ClusterRole", "mooring:mooring"]["rules"]
    assert [rule["verbs"] for rule in rules if "services" in rule["resources"]] == [["list", "watch"]]


WRITER = """
from mooring.framework import Plugin, PodWriter


class Diary(Plugin):
    def __init__(self, pods: PodWriter) -> None: ...

    async def pre_bind(self, pod, node, cycle): ...
"""


def rules_about_pods(*arguments: str) -> list[list[str]]:
    """The verbs on pods themselves, in the manifests and in the values of the chart, which are equal."""
    rules = written(*arguments)["ClusterRole", "mooring:mooring"]["rules"]
    values = yaml.safe_load(printed(*arguments, "--helm-values"))["rbac"]["clusterRules"]
    found = [[rule["verbs"] for rule in each if "pods" in rule["resources"]] for each in (rules, values)]
    assert found[0] == found[1]
    return [verbs for verbs in found[0] if isinstance(verbs, list)]


def test_pods_may_be_patched_only_where_a_plugin_needs_it():
    Path("diary.py").write_text(WRITER, encoding="utf-8")
    assert not any("patch" in verbs for verbs in rules_about_pods(config(), "--plugins=diary.py"))
    assert any("patch" in verbs for verbs in rules_about_pods(config(enabled=["Diary"]), "--plugins=diary.py"))


def test_each_rule_names_who_needs_it():
    text = printed(config())
    assert "# DefaultPreemption\n- apiGroups: [policy]\n  resources: [poddisruptionbudgets]\n" in text


def test_feature_gates_and_further_flags_are_on_its_command_line():
    arguments = ("--feature-gates=DRAExtendedResource=false", "--", "--pod-max-in-unschedulable-pods-duration=1m")
    documents = written(config(), *arguments)
    assert {"--feature-gates=DRAExtendedResource=false", arguments[-1]} <= set(container(documents)["args"])
    rules = documents["ClusterRole", "mooring:mooring"]["rules"]
    (claims,) = [rule["verbs"] for rule in rules if "resourceclaims" in rule["resources"]]
    assert "create" not in claims


def test_a_kubeconfig_in_the_file_is_left_out():
    text = "# mine\n" + yaml.safe_dump(a_file(clientConnection={"kubeconfig": "/home/me/.kube/config", "qps": 50}))
    Path("scheduler.yaml").write_text(text, encoding="utf-8")
    result = manifests("--config=scheduler.yaml")
    assert "clientConnection.kubeconfig is left out" in result.err
    (config_map,) = [each for each in yaml.safe_load_all(result.out) if each["kind"] == "ConfigMap"]
    kept = config_map["data"]["config.yaml"]
    assert kept.startswith("# mine\n")
    assert yaml.safe_load(kept) == a_file(clientConnection={"qps": 50})


@pytest.mark.parametrize("election", [{}, {"leaderElection": {"leaderElect": True}}], ids=["by default", "if it leads"])
def test_a_shadow_may_read_and_runs_with_shadow(election):
    documents = written(config(name="default-scheduler", **election), "--as=shadow")
    rules = documents["ClusterRole", "mooring:mooring-shadow"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
    assert not [kind for kind, _ in documents if kind in ("Role", "RoleBinding")]
    assert "--shadow" in container(documents, "mooring-shadow")["args"]


def test_the_same_is_written_twice():
    assert printed(config()) == printed(config())


def test_a_folder_gets_a_file_for_each_object():
    out = printed(config(), "--output=there").split()
    assert out[:2] == ["there/01-namespace.yaml", "there/02-serviceaccount.yaml"]
    files = sorted(Path("there").iterdir())
    assert [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files] == list(written(config()).values())


# In place of kube-scheduler.


def static_pod(*arguments: str) -> Any:
    return yaml.safe_load(printed(config(name="default-scheduler"), "--as=replacement", *arguments))


def test_three_things_change_in_the_manifest_of_the_node():
    own = static_pod()
    own["metadata"]["annotations"] = {"mine": "kept"}
    (running,) = own["spec"]["containers"]
    running["image"] = "kube-scheduler:v1.36.4"
    running["command"].remove("--config=/etc/kubernetes/mooring-config.yaml")
    running["command"].append("--v=4")
    del running["securityContext"]
    running["volumeMounts"].pop()
    own["spec"]["volumes"].pop()
    Path("kube-scheduler.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")

    changed = static_pod("--from=kube-scheduler.yaml", "--image=mine:1")
    (new,) = changed["spec"]["containers"]
    assert new["image"] == "mine:1"
    assert new["command"] == [*running["command"], "--config=/etc/kubernetes/mooring-config.yaml"]
    assert new["securityContext"] == {"runAsUser": 0}
    assert new["volumeMounts"].pop()["mountPath"] == "/etc/kubernetes/mooring-config.yaml"
    assert changed["spec"]["volumes"].pop()["hostPath"]["path"] == "/etc/kubernetes/mooring-config.yaml"
    for field in ("image", "command", "securityContext"):
        new.pop(field), running.pop(field, None)
    assert changed == own


def test_flags_that_stand_in_args_are_replaced_there():
    own = static_pod()
    (running,) = own["spec"]["containers"]
    running["command"], running["args"] = ["/usr/local/bin/kube-scheduler"], ["--config=/old.yaml", "--v=4"]
    Path("kube-scheduler.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    (new,) = static_pod("--from=kube-scheduler.yaml")["spec"]["containers"]
    assert new["command"] == ["/usr/local/bin/kube-scheduler"]
    assert new["args"] == ["--v=4", "--config=/etc/kubernetes/mooring-config.yaml"]


def from_a_pod_with(*flags: str) -> Result:
    own = static_pod()
    own["spec"]["containers"][0]["command"] += flags
    Path("kube-scheduler.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    return manifests(config(name="default-scheduler"), "--as=replacement", "--from=kube-scheduler.yaml")


def test_flags_of_an_old_kube_scheduler_are_refused_before_they_end_the_new_one():
    result = from_a_pod_with("--address=0.0.0.0", "--lock-object-name=mine", "--no-such-flag")
    assert result.code == 2
    assert "kube-scheduler.yaml has 3 problems" in result.err
    assert "--address\n    was removed from kube-scheduler" in result.err
    assert "--lock-object-name\n    was removed from kube-scheduler" in result.err
    assert "--no-such-flag\n    is not a flag" in result.err
    assert "kube-scheduler.yaml: Invalid value for '-v' / '--v': 'many'" in from_a_pod_with("--v=many").err


def test_flags_that_do_not_count_beside_a_configuration_are_named():
    result = from_a_pod_with("--profiling=false", "--kube-api-qps=100")
    assert result.code == 0
    for flag in ("--profiling", "--kube-api-qps"):
        assert f'"is ignored beside --config, as kube-scheduler ignores it: set it there" flag="{flag}"' in result.err
    assert "--kube-api-burst" in manifests(config(), "--", "--kube-api-burst=5").err


def test_a_replacement_in_a_folder_comes_with_its_files_and_the_role_it_needs():
    files = printed(
        config(name="default-scheduler", enabled=["NodeCRDResourceFit"]), "--as=replacement", "--output=there"
    ).split()
    assert files == ["there/kube-scheduler.yaml", "there/mooring-config.yaml", "there/rbac.yaml"]
    role, binding = yaml.safe_load_all(Path("there/rbac.yaml").read_text(encoding="utf-8"))
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["events"], ["list"]),
        (["clusterscopedresources"], ["list", "watch"]),
    ]
    assert binding["subjects"][0]["name"] == "system:kube-scheduler"


def test_a_replacement_that_lacks_no_right_has_the_optional_one_in_its_role():
    result = manifests(config(name="default-scheduler"), "--as=replacement", "--output=there")
    assert "kube-scheduler may not read" not in result.err
    role, _ = yaml.safe_load_all(Path("there/rbac.yaml").read_text(encoding="utf-8"))
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [(["events"], ["list"])]
    assert "kube-scheduler may not read" not in manifests(config(name="default-scheduler"), "--as=replacement").err


REFUSED = {
    "a file that is not there": (("--config=none.yaml",), "none.yaml cannot be read: No such file or directory"),
    "a name that no object can have": (("--name=My_Name",), "--name\n    a lowercase RFC 1123 label"),
    "two replicas without an election": (
        ("--replicas=2", "--", "--leader-elect=false"),
        "--replicas\n    2 would all bind pods: switch leader election on, or run one",
    ),
    "a flag that mooring run does not know": (("--", "--leader-elekt=false"), "leader-elekt"),
    "another configuration than the one it was made for": (
        ("--", "--config=other.yaml"),
        "-- --config\n    name the file before `--`",
    ),
    "an image without a name": (("--image=",), "--image\n    must be a name that can be pulled"),
    "an image with a space in its name": (("--image=a b",), "--image\n    must be a name that can be pulled"),
    "a port that is not probed": (
        ("--", "--secure-port=1"),
        "-- --secure-port\n    the manifest's probes use port 10259",
    ),
    "a shadow with the rights to write": (("--", "--shadow"), "-- --shadow\n    write --as shadow"),
    "a shadow that reloads, which no shadow does": (
        ("--as=shadow", "--", "--watch-config"),
        "-- --watch-config\n    a shadow compares with one configuration",
    ),
    "plugins that are to be reloaded, and none of them": (
        ("--", "--watch-config", "--reload-plugins"),
        "-- --reload-plugins\n    there are no plugin files to reload",
    ),
    "an address to listen on that is none": (
        ("--", "--bind-address=here"),
        '-- --bind-address\n    must be an IP address, got "here"',
    ),
    "a collector without an address": (
        ("--", "--tracing-endpoint=collector"),
        '-- --tracing-endpoint\n    "collector" is no address of a collector',
    ),
    "a static pod with replicas": (
        ("--as=replacement", "--replicas=2"),
        "--replicas\n    is for a Deployment; kubeadm's static pod has its own",
    ),
    "a starting point for a Deployment": (("--from=x.yaml",), "--from\n    is for --as replacement"),
    "another scheduler's name without a shadow": (("--scheduler-name=x",), "--scheduler-name\n    is for --as shadow"),
    "a manifest of something else": (
        ("--as=replacement", "--from=scheduler.yaml"),
        "kind\n    must be Pod: the static pod that kubeadm wrote for kube-scheduler",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_work_is_refused_by_name(arguments, message):
    known = () if arguments[0].startswith("--config") else (config(),)
    if not known:
        assert message in refused(*arguments)
    else:
        assert message in refused(*known, *arguments)


def test_plugin_files_too_large_for_a_config_map_are_refused():
    Path("quiet.py").write_text(PLUGIN + "#" * 1_100_000, encoding="utf-8")
    message = refused(config(enabled=["Quiet"]), "--plugins=quiet.py")
    assert re.search(r"--plugins\n    \d+ bytes are too many for a ConfigMap \(1 MiB\)", message)


def test_two_plugin_files_of_one_name_are_refused():
    for folder, name in (("a", "Quiet"), ("b", "Other")):
        Path(folder).mkdir()
        Path(folder, "quiet.py").write_text(PLUGIN.replace("Quiet", name), encoding="utf-8")
    assert "two files are called quiet.py" in refused(config(), "--plugins=a", "--plugins=b")


WARNED = {
    "a second scheduler for the default scheduler's pods": (
        "default-scheduler",
        "second-scheduler",
        "the profile default-scheduler is also the cluster's own scheduler's",
    ),
    "no scheduler left for the default scheduler's pods": (
        "other",
        "replacement",
        "no profile is called default-scheduler",
    ),
}


@pytest.mark.parametrize(("name", "mode", "message"), WARNED.values(), ids=WARNED.keys())
def test_what_is_often_not_meant_is_warned_about(name, mode, message):
    assert message in manifests(config(name=name), f"--as={mode}").err


def test_controllers_have_an_account_and_rights_of_their_own():
    documents = written(config(), "--controllers")
    name = next(name for kind, name in documents if kind == "Deployment" and name.endswith("-controllers"))
    assert container(documents, name)["command"] == ["mooring", "controllers"]
    assert documents["Deployment", name]["spec"]["template"]["spec"]["serviceAccountName"] == name
    rules = documents["ClusterRole", f"mooring:{name}"]["rules"]
    allowed = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert allowed == {
        *(
            (resource, verb)
            for resource in ("pods", "nodes", "podgroups", "elasticquotas", "noderesourcetopologies")
            for verb in ("list", "watch")
        ),
        *((f"{resource}/status", "patch") for resource in ("podgroups", "elasticquotas")),
        *(("events", verb) for verb in ("create", "patch")),
    }


def test_controllers_elect_a_leader_with_a_lease_of_their_own():
    documents = written(config(), "--controllers")
    name = next(name for kind, name in documents if kind == "Deployment" and name.endswith("-controllers"))
    assert documents["Deployment", name]["spec"]["replicas"] == 2
    assert f"--leader-elect-resource-name={name}" in container(documents, name)["args"]
    rules = documents["Role", f"mooring:{name}"]["rules"]
    assert {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": [name],
        "verbs": ["get", "update"],
    } in rules


def test_flags_of_controllers_are_those_of_the_command():
    from mooring.cli.controllers import controllers

    documents = written(config(), "--controllers")
    name = next(name for kind, name in documents if kind == "Deployment" and name.endswith("-controllers"))
    # click keeps the names of the help option from the first context of a command.
    parsed = controllers.make_context(
        "mooring controllers", list(container(documents, name)["args"]), help_option_names=["-h", "--help"]
    ).params
    assert (parsed["secure_port"], parsed["leader_elect_resource_name"]) == (10259, name)


def test_controllers_are_no_part_of_a_static_pod():
    assert "--controllers writes a Deployment" in refused(config(), "--controllers", "--as=replacement")


def test_what_the_cluster_needs_besides_is_named_on_standard_error():
    profiles = [{"plugins": {"multiPoint": {"enabled": [{"name": "NodeCRDResourceFit"}]}}}]
    result = manifests(config(profiles=profiles))
    assert result.code == 0
    assert f"Note: mooring:{__version__} is in no registry. Build it in a checkout (docker build" in result.err
    assert "Where that is not defined: mooring crd generate NodeCRDResourceFit | kubectl apply -f -" in result.err
    assert "Note:" not in result.out
    assert manifests(config(), "--image=registry.example/mine:1").err == ""


def test_the_definition_of_a_kind_of_ones_own_is_named_with_its_file():
    racks = "from mooring.framework import CustomResource, Objects, Plugin\n\n\n"
    racks += 'class Rack(CustomResource, group="example.com", version="v1", plural="racks"):\n    height: int = 0\n\n\n'
    racks += "class Racks(Plugin):\n    def __init__(self, racks: Objects[Rack]) -> None: ...\n\n"
    racks += "    def score(self, pod, node, cycle):\n        return 0\n"
    Path("my racks.py").write_text(racks, encoding="utf-8")
    profiles = [{"plugins": {"multiPoint": {"enabled": [{"name": "Racks"}]}}}]
    result = manifests(config(profiles=profiles), "--plugins=my racks.py")
    assert "Note: Racks reads racks.example.com. Where that is not defined: " in result.err
    assert "mooring crd generate Racks --plugins 'my racks.py' | kubectl apply -f -" in result.err
