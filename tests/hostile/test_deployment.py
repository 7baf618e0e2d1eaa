"""What the manifests do against neighbours in the cluster: memory limits, who reaches the port, what may run beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.command import printed, refused

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mooring
"""
PLUGIN = """\
from mooring.framework import Plugin


class Mine(Plugin):
    def score(self, pod, node, cycle):
        return 0
"""
MODES = ["second-scheduler", "shadow"]
VOLUMES_OF_RESTRICTED = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scheduler.yaml").write_text(CONFIG, encoding="utf-8")


def written(*arguments: str) -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(printed("--config=scheduler.yaml", *arguments))}


def pod_of(documents: dict[str, Any]) -> Any:
    return documents["Deployment"]["spec"]["template"]


@pytest.mark.parametrize("mode", MODES)
def test_memory_is_limited_and_cpu_is_not(mode):
    (container,) = pod_of(written(f"--as={mode}"))["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"memory": "2Gi"},
    }


def test_memory_can_be_chosen():
    (container,) = pod_of(written("--memory-request=512Mi", "--memory-limit=4Gi"))["spec"]["containers"]
    assert (container["resources"]["requests"]["memory"], container["resources"]["limits"]["memory"]) == (
        "512Mi",
        "4Gi",
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_port_is_reached_by_scrapers_alone(mode):
    documents = written(f"--as={mode}")
    policy = documents["NetworkPolicy"]
    assert policy["metadata"]["namespace"] == documents["Deployment"]["metadata"]["namespace"]
    labels = pod_of(documents)["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [
        {
            "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "ports": [{"protocol": "TCP", "port": 10259}],
        }
    ]


def peers(*arguments: str) -> Any:
    (rule,) = written(*arguments)["NetworkPolicy"]["spec"]["ingress"]
    return rule["from"]


def test_scrapers_and_nodes_can_be_chosen():
    found = peers("--metrics-from=obs/app.kubernetes.io/name=prometheus,tier=ops", "--probes-from=10.0.0.0/16")
    assert found == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "obs"}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus", "tier": "ops"}},
        },
        {"ipBlock": {"cidr": "10.0.0.0/16"}},
    ]
    assert len(peers("--metrics-from=one", "--metrics-from=other")) == 2
    assert len(peers("--probes-from=fd00::/8")) == 2


def test_without_scrapers_nothing_is_let_in_instead_of_everything():
    assert written("--metrics-from=")["NetworkPolicy"]["spec"]["ingress"] == []


def test_a_cluster_with_policies_of_its_own_can_do_without():
    assert "NetworkPolicy" not in written("--no-network-policy")


REFUSED = {
    "no namespace": (("--metrics-from=My Space",), "--metrics-from\n    must be NAMESPACE or NAMESPACE/LABEL=VALUE"),
    "a label without a value": (("--metrics-from=obs/app",), "'app' is not a label with its value"),
    "a label that no pod can have": (("--metrics-from=obs/a b=c",), "--metrics-from\n"),
    "no network": (("--probes-from=10.0.0.1/8",), "--probes-from\n    must be a network such as 10.0.0.0/16"),
    "an address alone": (("--probes-from=10.0.0.0",), "must be a network such as 10.0.0.0/16, got '10.0.0.0'"),
    "a netmask": (("--probes-from=10.0.0.0/255.0.0.0",), "must be a network such as 10.0.0.0/16"),
    "no quantity": (("--memory-limit=much",), "--memory-limit\n    'much' is not a quantity"),
    "too little": (("--memory-limit=1Mi",), "--memory-limit\n    must be 64Mi or more, got 1Mi"),
    "less than is requested": (("--memory-limit=128Mi",), "--memory-limit\n    must be at least what is requested"),
    "a static pod's memory": (("--as=replacement", "--memory-limit=1Gi"), "--memory-limit\n    is for a Deployment"),
    "a static pod's scrapers": (("--as=replacement", "--metrics-from=x"), "--metrics-from\n    is for a Deployment"),
    "a static pod's policy": (("--as=replacement", "--no-network-policy"), "--no-network-policy\n    is for a"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused(arguments, message):
    assert message in refused("--config=scheduler.yaml", *arguments)


@pytest.mark.parametrize("mode", MODES)
def test_a_namespace_of_ours_enforces_restricted(mode):
    labels = written(f"--as={mode}")["Namespace"]["metadata"]["labels"]
    assert labels == {f"pod-security.kubernetes.io/{each}": "restricted" for each in ("enforce", "audit", "warn")}


def test_a_namespace_of_others_is_left_alone():
    assert "Namespace" not in written("--namespace=kube-system")


@pytest.mark.parametrize("arguments", [(), ("--as=shadow",), ("--plugins=mine.py",)])
def test_the_pod_meets_restricted(arguments):
    """As the standard lists it; that kube-apiserver agrees is tested in tests/real_apiserver."""
    Path("mine.py").write_text(PLUGIN, encoding="utf-8")
    pod = pod_of(written(*arguments))["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= VOLUMES_OF_RESTRICTED
    for container in pod["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not [port for port in container["ports"] if port.get("hostPort")]


def test_a_static_pod_changes_in_no_other_way():
    """It runs in the host's network, as root, in kube-system: no policy selects it, and no standard applies."""
    pod = yaml.safe_load(printed("--config=scheduler.yaml", "--as=replacement"))
    (container,) = pod["spec"]["containers"]
    assert pod["kind"] == "Pod"
    assert container["resources"] == {"requests": {"cpu": "100m"}}
    assert "--bind-address=127.0.0.1" in container["command"]
