"""The values that make the Helm chart (deploy/helm/mooring) write what `manifests` writes.

A template cannot know what a plugin needs, so the rules come with the values: they are made for one configuration,
as the rest is.
"""

from __future__ import annotations

from mooring.deploy.controllers import REPLICAS, controller_flags, controller_resources, controller_rights
from mooring.deploy.manifests import Deployed
from mooring.deploy.rights import Right
from mooring.deploy.rules import rules_of
from mooring.deploy.writing import Document, dump, plain

HEADING = """\
# Values of the chart deploy/helm/mooring, for one configuration. Its plugins decide the rules, so write them again when
# it changes: mooring manifests --config FILE --helm-values
"""


def values_text(deployed: Deployed, *, controllers: bool = False) -> str:
    return HEADING + dump(values_of(deployed, controllers=controllers), compact=True)


def values_of(deployed: Deployed, *, controllers: bool = False) -> Document:
    """`controllers`: whether the chart runs `mooring controllers`, too."""
    repository, colon, tag = deployed.image.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = deployed.image, ""
    return {
        "name": deployed.name,
        "image": {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"},
        "replicas": deployed.replicas,
        "leaderElection": deployed.elects,
        "flags": list(deployed.flags),
        "config": deployed.config,
        "configIsSecret": deployed.holds_credentials,
        "plugins": dict(sorted(deployed.plugins.items())),
        "resources": deployed.resources,
        "networkPolicy": {
            "enabled": deployed.ingress is not None,
            "from": deployed.ingress.peers if deployed.ingress is not None else [],
        },
        "rbac": {
            **_rules(deployed.rights),
            "readsAuthentication": deployed.reads_authentication,
        },
        "controllers": {
            "enabled": controllers,
            "replicas": REPLICAS,
            "flags": list(controller_flags(deployed.name)),
            "resources": controller_resources(deployed),
            **_rules(controller_rights(deployed.name)),
        },
    }


def _rules(rights: tuple[Right, ...]) -> Document:
    rules = rules_of(rights)
    return {
        "clusterRules": plain(list(rules.get("", ()))),
        # A list: Helm would merge the values of one namespace into the default values of another.
        "namespacedRules": [
            {"namespace": namespace, "rules": plain(list(rules[namespace]))} for namespace in rules if namespace
        ],
    }
