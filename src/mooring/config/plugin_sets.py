"""Which plugins run at which point: a profile merged with the defaults, and `multiPoint` spread over the points.

The rules are kube-scheduler's. Merging keeps the defaults in order, replaces in place the one that is enabled again,
and appends the rest. Spreading puts first what a point configures itself of the `multiPoint` plugins, then the other
`multiPoint` plugins that have the point, then the rest of the point's own list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from mooring.base.documents import Tree
from mooring.base.errors import did_you_mean
from mooring.config.defaults import DEFAULT_PLUGINS, PLACEMENT_GATE, POD_GROUP_PLUGINS, REFUSED_IN_V1, REMOVED
from mooring.config.fields import Fields
from mooring.config.model import PluginUse
from mooring.config.plugin_args import GROUP
from mooring.config.problems import Problems
from mooring.framework.gates import FeatureGates
from mooring.framework.points import Point
from mooring.framework.registry import Registry

EVERY = "*"
MULTI_POINT = "multiPoint"
PLACEMENT_POINTS = (Point.PLACEMENT_GENERATE, Point.PLACEMENT_SCORE)


class ListedPlugin(msgspec.Struct, frozen=True):
    """A plugin in an `enabled` or `disabled` list."""

    name: str
    weight: int
    at: Tree


class PluginSet(msgspec.Struct, frozen=True):
    """What is enabled and disabled at one point."""

    enabled: list[ListedPlugin] = msgspec.field(default_factory=list)
    disabled: list[ListedPlugin] = msgspec.field(default_factory=list)

    @property
    def disabled_names(self) -> set[str]:
        return {entry.name for entry in self.disabled}

    @property
    def as_compared(self) -> tuple[list[tuple[str, int]], list[str]]:
        """What must be alike where two sets must be alike."""
        return [(entry.name, entry.weight) for entry in self.enabled], [entry.name for entry in self.disabled]


class WrittenPlugins(msgspec.Struct, frozen=True):
    """A profile's `plugins`, as written: the sets by point name, `multiPoint` among them."""

    sets: Mapping[str, PluginSet]
    broken: frozenset[str]
    """The points with mistakes in them: what counts their plugins would only repeat the mistake."""

    def at(self, point: str) -> PluginSet:
        return self.sets.get(point, PluginSet())


def read_plugins(fields: Fields, registry: Registry, gates: FeatureGates, problems: Problems) -> WrittenPlugins:
    """The `plugins` of a profile. Names that cannot be used are reported and left out."""
    sets: dict[str, PluginSet] = {}
    broken = set()
    for name in (MULTI_POINT, *(point.config_name for point in Point)):
        before = problems.count
        section = fields.section(name)
        enabled = _entries(section, "enabled", problems)
        disabled = _entries(section, "disabled", problems)
        section.finish()
        sets[name] = PluginSet(
            [entry for entry in enabled if _usable(entry, name, registry, gates, problems)], disabled
        )
        for entry in enabled:
            if entry.weight < 0:
                problems.warn(entry.at, f'weight {entry.weight} of "{entry.name}" prefers the nodes it scores lowest')
        for entry in disabled:
            _warn_if_unknown(entry, registry, problems)
        if problems.count > before:
            broken.add(name)
    fields.finish()
    _warn_if_enabled_all_the_same(sets, problems)
    return WrittenPlugins(sets, frozenset(broken))


def _entries(section: Fields, name: str, problems: Problems) -> list[ListedPlugin]:
    entries = []
    for item in section.items(name):
        fields = Fields(item, problems)
        plugin, weight = fields.text("name"), fields.whole("weight")
        fields.finish()
        if plugin:
            entries.append(ListedPlugin(plugin, weight or 0, item.get("name") or item))
        elif fields.is_mapping and (plugin == "" or item.get("name") is None):
            problems.error(item, "Required value: the name of a plugin", field="name")
    return entries


def _usable(entry: ListedPlugin, point: str, registry: Registry, gates: FeatureGates, problems: Problems) -> bool:
    """Whether the enabled plugin exists and has the point."""
    interface = _interface(point)
    is_of_placements = any(point == each.config_name for each in PLACEMENT_POINTS)
    gate = PLACEMENT_GATE if is_of_placements else POD_GROUP_PLUGINS.get(entry.name)
    if gate is not None and not gates.on(gate):
        problems.error(entry.at, needs_gate(interface or "plugin", entry.name, gate))
        return False
    known = registry.get(entry.name)
    if known is None:
        problems.error(entry.at, f"{interface + ' ' if interface else ''}{missing(entry.name, registry)}")
        return False
    if point != MULTI_POINT and point not in {each.config_name for each in known.points}:
        has = ", ".join(each.config_name for each in known.points)
        problems.error(entry.at, f'plugin "{entry.name}" does not extend {interface} plugin: it has {has}')
        return False
    return True


def needs_gate(what: str, name: str, gate: str) -> str:
    return f'{what} "{name}" is about pod groups: it needs --feature-gates {gate}=true'


def _interface(point: str) -> str:
    return next((each.interface for each in Point if each.config_name == point), "")


def missing(name: str, registry: Registry) -> str:
    """Why a plugin of this name cannot be used, and what to write instead."""
    if name in DEFAULT_PLUGINS:
        return f'"{name}" does not exist: it is one of kube-scheduler\'s defaults that Mooring does not have yet'
    if name in REFUSED_IN_V1:
        version = f"{GROUP}/v1"
        return (
            f'"{name}" was invalid in version "{version}" (KubeSchedulerConfiguration is version "{version}"): '
            f"{REMOVED[name]}"
        )
    if name in REMOVED:
        return f'"{name}" does not exist: kube-scheduler no longer has it; {REMOVED[name]}'
    if name == EVERY:
        return '"*" does not exist: "*" can be disabled, not enabled; name the plugins'
    hint = did_you_mean(name, (entry.name for entry in registry))
    return f'"{name}" does not exist: it is not a known plugin.{hint}'


def _warn_if_unknown(entry: ListedPlugin, registry: Registry, problems: Problems) -> None:
    name = entry.name
    if name == EVERY or name in registry or name in (*DEFAULT_PLUGINS, *POD_GROUP_PLUGINS, *REFUSED_IN_V1):
        return
    hint = did_you_mean(name, (each.name for each in registry))
    problems.warn(entry.at, f'"{name}" is disabled, but it is not a known plugin.{hint}')


def _warn_if_enabled_all_the_same(sets: Mapping[str, PluginSet], problems: Problems) -> None:
    """Warn where a plugin is disabled that only this file enables: its `enabled` wins, and nothing is disabled.

    What is enabled by default is another matter: to disable it everywhere and enable it at one point is usual.
    """
    spread_by_file = {entry.name for entry in sets[MULTI_POINT].enabled}
    for point, written in sets.items():
        for entry in written.disabled:
            if entry.name in DEFAULT_PLUGINS or (point != MULTI_POINT and entry.name in spread_by_file):
                continue
            looked_at = sets if point == MULTI_POINT else (point,)
            places = [f"{each}.enabled" for each in looked_at if entry.name in {own.name for own in sets[each].enabled}]
            if places:
                wins = f"{' and '.join(places)} wins. To switch it off, take it out there"
                problems.warn(entry.at, f'"{entry.name}" runs although it is disabled here: {wins}')


def merged(defaults: Iterable[ListedPlugin], own: PluginSet) -> PluginSet:
    """A profile's set on top of the default one."""
    disabled = own.disabled_names
    # Of a name given twice the last one replaces the default; the first is appended, and found to be double later.
    replacing = {entry.name: index for index, entry in enumerate(own.enabled)}
    kept: list[ListedPlugin] = []
    replaced: set[int] = set()
    for default in defaults if EVERY not in disabled else ():
        if default.name in disabled:
            continue
        index = replacing.get(default.name)
        if index is None:
            kept.append(default)
        else:
            kept.append(own.enabled[index])
            replaced.add(index)
    kept += [entry for index, entry in enumerate(own.enabled) if index not in replaced]
    return PluginSet(kept, own.disabled)


def spread(point: Point, multi_point: PluginSet, own: PluginSet, registry: Registry, problems: Problems) -> list[str]:
    """The plugins of one point, in the order in which they run."""
    listed = _each_once(own.enabled, point, problems)
    disabled = own.disabled_names
    if EVERY in disabled:
        return listed
    spreading = [
        entry
        for entry in multi_point.enabled
        if entry.name not in disabled and (known := registry.get(entry.name)) is not None and point in known.points
    ]
    overridden = {entry.name for entry in spreading} & set(listed)
    from_multi_point = _each_once([entry for entry in spreading if entry.name not in overridden], point, problems)
    return [
        *(name for name in listed if name in overridden),
        *from_multi_point,
        *(name for name in listed if name not in overridden),
    ]


def _each_once(entries: Iterable[ListedPlugin], point: Point, problems: Problems) -> list[str]:
    names: dict[str, None] = {}
    for entry in entries:
        if entry.name in names:
            problems.error(entry.at, f'plugin "{entry.name}" already registered as "{point.interface}": name it once')
        names[entry.name] = None
    return list(names)


def weighted(names: Iterable[str], own: PluginSet, multi_point: PluginSet) -> tuple[PluginUse, ...]:
    """Score plugins with their weights: the point's own entry counts before the one of `multiPoint`."""
    weights: dict[str, int] = {}
    for entry in (*own.enabled, *multi_point.enabled):
        weights.setdefault(entry.name, entry.weight or 1)
    return tuple(PluginUse(name, weights[name]) for name in names)
