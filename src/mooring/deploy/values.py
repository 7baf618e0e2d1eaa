"""The values that make the Helm chart (deploy/helm/mooring) write what `manifests` writes.

A template cannot know what a plugin needs, so the rules come with the values: they are made for one configuration,
as the rest is.
"""

from __future__ import annotations

from mooring.deploy.manifests import Deployed
from mooring.deploy.rules import rules_of
from mooring.deploy.writing import Document, dump, plain

HEADING = """\
# Values of the chart deploy/helm/mooring, for one configuration. Its plugins decide the rules, so write them again when
# it changes: mooring manifests --config FILE --helm-values
"""


def values_text(deployed: Deployed) -> str:
    return HEADING + dump(values_of(deployed), compact=True)


def values_of(deployed: Deployed) -> Document:
    repository, colon, tag = deployed.image.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = deployed.image, ""
    rules = rules_of(deployed.rights)
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
            "clusterRules": plain(list(rules.get("", ()))),
            # A list: Helm would merge the values of one namespace into the default values of another.
            "namespacedRules": [
                {"namespace": namespace, "rules": plain(list(rules[namespace]))} for namespace in rules if namespace
            ],
            "readsAuthentication": deployed.reads_authentication,
        },
    }
