"""`extenders`: HTTP services that take part in decisions."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.base.documents import Tree
from mooring.config.fields import Fields
from mooring.config.model import Extender, ExtenderTls, ManagedResource
from mooring.config.problems import Problems
from mooring.objects.names import qualified_name


def read_extenders(items: Sequence[Tree], problems: Problems) -> tuple[Extender, ...]:
    """All extenders; those that may be ignored come last, each group in the order of the file."""
    managed: set[str] = set()
    extenders = [_extender(Fields(item, problems), managed, problems) for item in items]
    binders = [item for item, extender in zip(items, extenders, strict=True) if extender.bind_verb]
    for extra in binders[1:]:
        at = extra.get("bindVerb") or extra
        problems.error(at, f"only one extender can implement bind: found {len(binders)} extenders implementing bind")
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def _extender(fields: Fields, managed: set[str], problems: Problems) -> Extender:
    extender = Extender(
        url_prefix=fields.text("urlPrefix") or "",
        filter_verb=fields.text("filterVerb") or "",
        preempt_verb=fields.text("preemptVerb") or "",
        prioritize_verb=fields.text("prioritizeVerb") or "",
        bind_verb=fields.text("bindVerb") or "",
        weight=fields.whole("weight", bits=64) or 0,
        enable_https=fields.truth("enableHTTPS") or False,
        tls=_tls(fields.section("tlsConfig")) if fields.take("tlsConfig") else None,
        timeout_seconds=fields.duration("httpTimeout") or 5.0,
        node_cache_capable=fields.truth("nodeCacheCapable") or False,
        managed_resources=tuple(
            _managed_resource(Fields(item, problems), managed, problems) for item in fields.items("managedResources")
        ),
        ignorable=fields.truth("ignorable") or False,
    )
    fields.finish()
    if extender.prioritize_verb and extender.weight <= 0:
        problems.error_at(
            fields.tree,
            "weight",
            f"must have a positive weight applied to it, because it has a prioritizeVerb; got {extender.weight}",
        )
    return extender


def _tls(fields: Fields) -> ExtenderTls:
    tls = ExtenderTls(
        insecure=fields.truth("insecure") or False,
        server_name=fields.text("serverName") or "",
        cert_file=fields.text("certFile") or "",
        key_file=fields.text("keyFile") or "",
        ca_file=fields.text("caFile") or "",
        cert_data=fields.data("certData") or b"",
        key_data=fields.data("keyData") or b"",
        ca_data=fields.data("caData") or b"",
    )
    fields.finish()
    return tls


def _managed_resource(fields: Fields, managed: set[str], problems: Problems) -> ManagedResource:
    before = problems.count
    name = fields.text("name") or ""
    resource = ManagedResource(name, fields.truth("ignoredByScheduler") or False)
    fields.finish()
    at = fields.tree.get("name") or fields.tree
    if problems.count == before and not is_extended_resource(name):
        problems.error(at, f'"{name}" is an invalid extended resource name; it is written as "example.com/gpu"')
    if name in managed:
        problems.error(at, f'duplicate extender managed resource name: "{name}" is managed twice')
    managed.add(name)
    return resource


def is_extended_resource(name: str) -> bool:
    """Whether this names a resource outside kubernetes.io, fit for a quota: `example.com/gpu`."""
    domain, slash, _ = name.rpartition("/")
    if not slash or domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or name.startswith("requests."):
        return False
    return not qualified_name(f"requests.{name}")
