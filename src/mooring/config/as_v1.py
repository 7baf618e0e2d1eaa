"""A configuration as a complete v1 document, in the form that kube-scheduler shows and reads.

Where Mooring's defaults are not kube-scheduler's, the document has the effective value: all nodes are
evaluated (100), and a client limit of 0 is none.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import msgspec

from mooring.base.durations import go_duration
from mooring.base.redaction import redacted_document, redacted_url
from mooring.config.model import Configuration, Extender, ExtenderTls, PluginChoice, ProfileConfiguration
from mooring.config.plugin_args import GROUP
from mooring.config.plugin_sets import MULTI_POINT, PLACEMENT_POINTS
from mooring.framework.args import Args

VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"
POINTS = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit"),
    *("preBind", "bind", "postBind", MULTI_POINT, *(point.config_name for point in PLACEMENT_POINTS)),
)
ALL_NODES = 100
CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]

Document = dict[str, Any]


def as_v1(configuration: Configuration, *, with_credentials: bool = False) -> Document:
    """The document, fields in kube-scheduler's order.

    Credentials are in it only on request: keys, what an address holds besides host and path, and what plugin
    arguments hold in fields that are named like a credential (`redaction`).
    """
    election, client = configuration.leader_election, configuration.client_connection
    percentage = configuration.percentage_of_nodes_to_score
    document: Document = {
        "kind": KIND,
        "apiVersion": VERSION,
        "parallelism": configuration.parallelism,
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": go_duration(election.lease_duration_seconds),
            "renewDeadline": go_duration(election.renew_deadline_seconds),
            "retryPeriod": go_duration(election.retry_period_seconds),
            "resourceLock": election.resource_lock,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
        },
        "clientConnection": {
            "kubeconfig": client.kubeconfig,
            "acceptContentTypes": client.accept_content_types,
            "contentType": client.content_type,
            "qps": _number(client.qps or 0),
            "burst": client.burst or 0,
        },
        "enableProfiling": configuration.enable_profiling,
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "percentageOfNodesToScore": ALL_NODES if percentage is None else percentage,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "profiles": [_profile(profile, with_credentials) for profile in configuration.profiles],
    }
    if configuration.extenders:
        document["extenders"] = [_extender(extender, with_credentials) for extender in configuration.extenders]
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return document


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _profile(profile: ProfileConfiguration, with_credentials: bool) -> Document:
    document: Document = {"schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    document["plugins"] = {point: _choice(profile.choices.get(point, PluginChoice())) for point in POINTS}
    args = {name: _args(name, args) for name, args in profile.args.items()}
    if not with_credentials:
        args = {name: redacted_document(each) for name, each in args.items()}
    document["pluginConfig"] = [{"name": name, "args": each} for name, each in args.items()]
    return document


def _choice(choice: PluginChoice) -> Document:
    enabled = [{"name": use.name, "weight": use.weight} for use in choice.enabled]
    disabled = [{"name": name, "weight": 0} for name in choice.disabled]
    return ({"enabled": enabled} if enabled else {}) | ({"disabled": disabled} if disabled else {})


def args_as_json(args: Args) -> bytes:
    """With durations as Go writes them and without empty fields: what is shown can be pasted into a file."""
    return msgspec.json.encode(_plain(args))


def _plain(args: Args) -> Any:
    return _without_nothing(_with_go_durations(msgspec.to_builtins(args, builtin_types=(timedelta,))))


def _with_go_durations(value: Any) -> Any:
    if isinstance(value, timedelta):
        return go_duration(value.total_seconds())
    if isinstance(value, dict):
        return {key: _with_go_durations(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_go_durations(each) for each in value]
    return value


def _args(plugin: str, args: Args) -> Document:
    written: Document = _plain(args)
    if plugin == "NodeResourcesBalancedAllocation":
        written["resources"] = _weighted(written.get("resources"))
    elif plugin == "NodeResourcesFit":
        strategy = written["scoringStrategy"]
        written["scoringStrategy"] = {"type": strategy["type"], "resources": _weighted(strategy.get("resources"))} | {
            key: value for key, value in strategy.items() if key not in ("type", "resources")
        }
    return {"kind": f"{plugin}Args", "apiVersion": VERSION, **written}


def _weighted(resources: list[Document] | None) -> list[Document]:
    """No resources stand for the usual two, and no weight for one."""
    return [each | {"weight": each.get("weight") or 1} for each in resources or CPU_AND_MEMORY]


def _without_nothing(value: Any) -> Any:
    """The same without fields that hold nothing."""
    if isinstance(value, dict):
        kept = {key: _without_nothing(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each is not None and each != [] and each != {}}
    if isinstance(value, list | tuple):
        return [_without_nothing(each) for each in value]
    return value


def _extender(extender: Extender, with_credentials: bool) -> Document:
    document: Document = {
        "urlPrefix": extender.url_prefix if with_credentials else redacted_url(extender.url_prefix),
        "filterVerb": extender.filter_verb,
        "preemptVerb": extender.preempt_verb,
        "prioritizeVerb": extender.prioritize_verb,
        "weight": extender.weight,
        "bindVerb": extender.bind_verb,
        "enableHTTPS": extender.enable_https,
        "tlsConfig": _tls(extender.tls, with_credentials) if extender.tls is not None else None,
        "httpTimeout": go_duration(extender.timeout_seconds),
        "nodeCacheCapable": extender.node_cache_capable,
        "managedResources": [
            {"name": each.name} | ({"ignoredByScheduler": True} if each.ignored_by_scheduler else {})
            for each in extender.managed_resources
        ],
        "ignorable": extender.ignorable,
    }
    return {key: value for key, value in document.items() if value}


def _tls(tls: ExtenderTls, with_credentials: bool) -> Document:
    document = {
        "insecure": tls.insecure,
        "serverName": tls.server_name,
        "certFile": tls.cert_file,
        "keyFile": tls.key_file,
        "caFile": tls.ca_file,
        "certData": base64.b64encode(tls.cert_data).decode(),
        "keyData": base64.b64encode(tls.key_data).decode() if with_credentials else "",
        "caData": base64.b64encode(tls.ca_data).decode(),
    }
    return {key: value for key, value in document.items() if value}
