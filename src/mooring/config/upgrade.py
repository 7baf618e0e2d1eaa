"""Old versions of the configuration, brought to v1 without changing what is decided.

What v1 expresses differently is rewritten; what is lost or done differently is a warning; what v1 cannot express is an
error. The result is then checked as v1, so that one run reports everything. Values keep the places where they were
written. This module does the fields of the file; `upgrade_profile` does what concerns plugins.
"""

from __future__ import annotations

from mooring.base.documents import Tree, made
from mooring.config.defaults import DEFAULT_PLUGINS
from mooring.config.plugin_args import GROUP, VERSIONS
from mooring.config.problems import Problems
from mooring.config.profile_edit import ProfileEdit
from mooring.config.upgrade_profile import LIMITS_AND_SPREAD, V1BETA1_ONLY, keep_old_weights
from mooring.framework.registry import Registry

_SINCE = {"delayCacheUntilActive": "v1"}
_SINCE_IN_PROFILE = {"percentageOfNodesToScore": "v1"}
_SINCE_IN_PLUGINS = {"multiPoint": "v1beta3", "preEnqueue": "v1beta2"}
_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")
_NEVER_STABLE = {
    "algorithmSource": "Policy files and providers are no longer read; write profiles",
    "featureGates": "feature gates are given on the command line: --feature-gates",
}


def upgrade(tree: Tree, version: str, registry: Registry, problems: Problems) -> None:
    """Change the tree of an old version into one of v1."""
    _check_age(tree, _SINCE, version, problems)
    _addresses(tree, problems)
    _resource_lock(tree, problems)
    for name, instead in _NEVER_STABLE.items():
        if name in tree.fields:
            problems.error(tree.fields.pop(name), f"cannot be converted: {instead}")
    profiles = _profiles(tree)
    _preemption(tree, profiles, problems)
    for profile in profiles:
        _check_age(profile.tree, _SINCE_IN_PROFILE, version, problems)
        _check_age(profile.plugins, _SINCE_IN_PLUGINS, version, problems)
        _unreserve(profile, problems)
        _args_versions(profile, registry)
        rules = (*V1BETA1_ONLY, *LIMITS_AND_SPREAD) if version == "v1beta1" else LIMITS_AND_SPREAD
        for rule in rules:
            rule(profile, problems)
    if version in ("v1beta1", "v1beta2"):
        keep_old_weights(tree.fields["apiVersion"], profiles, registry, problems)
    tree.fields["apiVersion"].value = f"{GROUP}/v1"


def _profiles(tree: Tree) -> list[ProfileEdit]:
    """The profiles; the default one is written out where there are none, because it too has old weights to keep."""
    profiles = tree.get("profiles")
    if profiles is None or profiles.value == []:
        at = Tree(None, "profiles[0]", tree.line)
        tree.fields["profiles"] = profiles = Tree([made({}, at)], "profiles", tree.line)
    return [ProfileEdit(item) for item in profiles.items if isinstance(item.value, dict)]


def _check_age(tree: Tree, since: dict[str, str], version: str, problems: Problems) -> None:
    """Refuse fields that the file's version did not have yet."""
    for name, first in since.items():
        # VERSIONS begins with the newest.
        if tree.get(name) is not None and VERSIONS.index(version) > VERSIONS.index(first):
            problems.error(
                tree.fields[name], f'unknown field "{name}": it exists since {first}, and the file is {version}'
            )


def _addresses(tree: Tree, problems: Problems) -> None:
    for name in _ADDRESSES:
        found = tree.fields.pop(name, None)
        if found is None or found.value is None:
            continue
        if not isinstance(found.value, str):
            problems.error(found, f"must be a string, got {found.shown()}")
        elif found.value and found.value.rpartition(":")[2] != "0":
            problems.warn(found, "is dropped: health and metrics are served only over HTTPS, on --secure-port")


def _resource_lock(tree: Tree, problems: Problems) -> None:
    election = tree.get("leaderElection")
    lock = election.get("resourceLock") if election else None
    if election is None or lock is None:
        return
    elect = election.get("leaderElect")
    if elect is not None and elect.value is False:
        if lock.value in ("endpoints", "configmaps", "endpointsleases", "configmapsleases"):
            lock.value = "leases"
    elif lock.value in ("endpointsleases", "configmapsleases"):
        problems.warn(lock, f'"{lock.value}" becomes "leases", the half of it that is left')
        lock.value = "leases"
    elif lock.value in ("endpoints", "configmaps"):
        problems.error(
            lock,
            f'"{lock.value}" cannot be converted: a scheduler that still locks there would not see our lease, and two '
            f'would lead. Move all of them to "{lock.value}leases", then to "leases".',
        )
        lock.value = "leases"


def _preemption(tree: Tree, profiles: list[ProfileEdit], problems: Problems) -> None:
    """`disablePreemption`, of before profiles."""
    switch = tree.fields.pop("disablePreemption", None)
    if switch is None or switch.value is None:
        return
    if not isinstance(switch.value, bool):
        problems.error(switch, f"must be true or false, got {switch.shown()}")
    elif switch.value:
        problems.warn(switch, "becomes DefaultPreemption disabled at postFilter, in every profile")
        for profile in profiles:
            profile.add("postFilter", "disabled", {"name": "DefaultPreemption"}, switch)


def _unreserve(profile: ProfileEdit, problems: Problems) -> None:
    """The point `unreserve`, which `reserve` has taken in."""
    unreserve = profile.plugins.fields.pop("unreserve", None)
    if unreserve is None or unreserve.value is None:
        return
    problems.warn(unreserve, "is merged into reserve, which has both halves")
    for which in ("enabled", "disabled"):
        part = unreserve.get(which)
        for item in part.items if part else []:
            name = item.get("name")
            if name is None or profile.find("reserve", which, str(name.value)) is None:
                profile.add("reserve", which, item, item)


def _args_versions(profile: ProfileEdit, registry: Registry) -> None:
    """Arguments that carry an old version of their own; what is not known is left as it is."""
    for name, args in profile.all_args():
        version = args.get("apiVersion")
        is_known = name in registry or name in DEFAULT_PLUGINS
        if is_known and version is not None and version.value in [f"{GROUP}/{each}" for each in VERSIONS]:
            version.value = f"{GROUP}/v1"
