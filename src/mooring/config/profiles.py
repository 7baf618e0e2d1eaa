"""`profiles`: for each scheduler name, the plugins at every point and their arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mooring.base.documents import Tree, made
from mooring.base.errors import did_you_mean
from mooring.config.defaults import (
    DEFAULT_PLUGINS,
    PLACEMENT_GATE,
    POD_GROUP_PLUGINS,
    REFUSED_IN_V1,
    default_plugins,
)
from mooring.config.fields import Fields
from mooring.config.model import PluginChoice, PluginUse, ProfileConfiguration
from mooring.config.plugin_args import check_header, read_args
from mooring.config.plugin_sets import (
    MULTI_POINT,
    PLACEMENT_POINTS,
    ListedPlugin,
    PluginSet,
    WrittenPlugins,
    merged,
    missing,
    needs_gate,
    read_plugins,
    spread,
    weighted,
)
from mooring.config.problems import Problems
from mooring.framework.args import Args
from mooring.framework.gates import FeatureGates
from mooring.framework.points import Point
from mooring.framework.registry import Registry

DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_BINDER = "DefaultBinder"


@dataclass
class _Profile:
    """A profile under examination."""

    tree: Tree
    configuration: ProfileConfiguration
    written: WrittenPlugins


class ProfileReader:
    """Reads profiles against one registry."""

    def __init__(
        self, registry: Registry, gates: FeatureGates, problems: Problems, ignored_resources: Sequence[str]
    ) -> None:
        self._registry = registry
        self._gates = gates
        self._problems = problems
        self._ignored_resources = list(ignored_resources)
        """Resources that an extender manages alone: they replace what NodeResourcesFit would ignore."""

    def read(self, root: Fields) -> tuple[ProfileConfiguration, ...]:
        items = root.items("profiles")
        if not items:
            items = [Tree({}, root.tree.below("profiles[0]"), root.tree.line)]
        profiles = [self._profile(item, is_only=len(items) == 1) for item in items]
        self._check_names(profiles)
        self._check_queue_sort(profiles)
        return tuple(profile.configuration for profile in profiles)

    def _profile(self, tree: Tree, *, is_only: bool) -> _Profile:
        fields = Fields(tree, self._problems)
        name = fields.text("schedulerName")
        if name is None and tree.get("schedulerName") is None and is_only:
            name = DEFAULT_SCHEDULER_NAME
        if not name and (tree.get("schedulerName") is None or name == ""):
            self._problems.error(
                tree, "Required value: each of several profiles has a name of its own", field="schedulerName"
            )
        percentage = percentage_of_nodes(fields, self._problems)
        plugins = fields.section("plugins")
        written = read_plugins(plugins, self._registry, self._gates, self._problems)
        sets = self._merged(written, plugins.tree)
        points = self._points(sets)
        self._check_counts(points, written, plugins.tree, name or "")
        used = tuple(dict.fromkeys(use.name for uses in points.values() for use in uses))
        args = self._args(fields, used)
        fields.finish()
        self._warn_of_scores_without_pre_score(points, plugins.tree)
        self._warn_of_binders_never_called(points, plugins.tree)
        choices = {
            point: PluginChoice(
                tuple(PluginUse(entry.name, entry.weight) for entry in each.enabled),
                tuple(entry.name for entry in each.disabled),
            )
            for point, each in sets.items()
        }
        configuration = ProfileConfiguration(name or "", points, args, used, percentage, choices)
        return _Profile(tree, configuration, written)

    def _merged(self, written: WrittenPlugins, at: Tree) -> dict[str, PluginSet]:
        """What is enabled and disabled by point name, the defaults at `multiPoint`."""
        defaults = [
            ListedPlugin(name, weight, at) for name, weight in default_plugins(self._registry, self._gates).items()
        ]
        sets = {point.config_name: merged((), written.at(point.config_name)) for point in Point}
        return sets | {MULTI_POINT: merged(defaults, written.at(MULTI_POINT))}

    def _points(self, sets: Mapping[str, PluginSet]) -> dict[Point, tuple[PluginUse, ...]]:
        multi_point = sets[MULTI_POINT]
        points: dict[Point, tuple[PluginUse, ...]] = {}
        for point in Point:
            own = sets[point.config_name]
            if point in PLACEMENT_POINTS and not self._gates.on(PLACEMENT_GATE):
                continue
            names = spread(point, multi_point, own, self._registry, self._problems)
            if point in (Point.SCORE, Point.PLACEMENT_SCORE):
                points[point] = weighted(names, own, multi_point)
            else:
                points[point] = tuple(PluginUse(name) for name in names)
        return points

    def _check_counts(
        self, points: dict[Point, tuple[PluginUse, ...]], written: WrittenPlugins, at: Tree, profile: str
    ) -> None:
        def is_sound(point: Point) -> bool:
            return not {MULTI_POINT, point.config_name} & written.broken

        sorters = [use.name for use in points[Point.QUEUE_SORT]]
        if len(sorters) != 1 and is_sound(Point.QUEUE_SORT):
            which = f" ({', '.join(sorters)})" if sorters else "; PrioritySort is the usual one"
            self._problems.error_at(
                at,
                "queueSort",
                f'only one queue sort plugin required for profile with scheduler name "{profile}", '
                f"but got {len(sorters)}{which}",
            )
        if not points[Point.BIND] and is_sound(Point.BIND):
            self._problems.error_at(
                at,
                "bind",
                f'at least one bind plugin is needed for profile with scheduler name "{profile}"; '
                f"DefaultBinder is the usual one",
            )

    def _args(self, fields: Fields, used: Collection[str]) -> dict[str, Args]:
        """The arguments of the plugins in use; those of the others are checked too."""
        given: dict[str, Args | None] = {}
        for item in fields.items("pluginConfig"):
            entry = Fields(item, self._problems)
            name, args = entry.text("name"), entry.take("args")
            entry.finish()
            if not name:
                if (entry.is_mapping and item.get("name") is None) or name == "":
                    self._problems.error(item, "Required value: the name of a plugin", field="name")
                continue
            if name in given:
                self._problems.error(
                    item.fields["name"], f'Duplicate value: "{name}": repeated config for plugin {name}'
                )
                continue
            given[name] = self._plugin_args(
                name, item, args or made({}, item), is_given=args is not None, is_used=name in used
            )
        at = made({}, Tree(None, fields.tree.below("pluginConfig"), fields.tree.line))
        for name in used:
            if name not in given:
                given[name] = self._default_args(name, at)
        return {name: found for name in sorted(used) if (found := given.get(name)) is not None}

    def _plugin_args(self, name: str, item: Tree, args: Tree, *, is_given: bool, is_used: bool) -> Args | None:
        at = item.fields["name"]
        entry = self._registry.get(name)
        if name in POD_GROUP_PLUGINS and not self._gates.on(POD_GROUP_PLUGINS[name]):
            self._problems.error(at, needs_gate("plugin", name, POD_GROUP_PLUGINS[name]))
            return None
        if entry is None:
            if name in DEFAULT_PLUGINS or name in REFUSED_IN_V1:
                self._problems.error(at, missing(name, self._registry))
            else:
                hint = did_you_mean(name, (each.name for each in self._registry))
                self._problems.warn(at, f'"{name}" is not a known plugin; its arguments are not used.{hint}')
            return None
        if not is_given:
            args = Tree({}, item.below("args"), item.line)
        if entry.args is None:
            check_header(name, args, self._problems)
            if set(args.fields) - {"apiVersion", "kind"}:
                self._problems.warn(args, f"{name} takes no arguments; these are not used")
            return None
        tree = self._with_ignored_resources(name, args)
        return read_args(name, entry.args, tree, self._gates, self._problems, is_used=is_used)

    def _default_args(self, name: str, at: Tree) -> Args | None:
        entry = self._registry.get(name)
        if entry is None or entry.args is None:
            return None
        place = Tree({}, f"{at.path}[{name}].args", at.line)
        return read_args(name, entry.args, self._with_ignored_resources(name, place), self._gates, self._problems)

    def _with_ignored_resources(self, name: str, args: Tree) -> Tree:
        if name != "NodeResourcesFit" or not self._ignored_resources:
            return args
        return Tree({**args.fields, "ignoredResources": made(self._ignored_resources, args)}, args.path, args.line)

    def _warn_of_scores_without_pre_score(self, points: dict[Point, tuple[PluginUse, ...]], at: Tree) -> None:
        prepared = {use.name for use in points[Point.PRE_SCORE]}
        bare = [
            use.name
            for use in points[Point.SCORE]
            if use.name not in prepared
            and (entry := self._registry.get(use.name)) is not None
            and Point.PRE_SCORE in entry.points
            and entry.cls.score_needs_pre_score
        ]
        if bare:
            self._problems.warn(
                at.get("preScore") or at,
                f"preScore is off for {', '.join(bare)}, whose score needs it: scoring will fail wherever two nodes "
                f"are feasible. Disable {'it' if len(bare) == 1 else 'them'} at score too, or leave preScore on.",
                field=None if at.get("preScore") else "preScore",
            )

    def _warn_of_binders_never_called(self, points: dict[Point, tuple[PluginUse, ...]], at: Tree) -> None:
        names = [use.name for use in points[Point.BIND]]
        if DEFAULT_BINDER not in names or names[-1] == DEFAULT_BINDER:
            return
        behind = names[names.index(DEFAULT_BINDER) + 1 :]
        before = ", ".join(f"{{name: {name}}}" for name in [*names[: names.index(DEFAULT_BINDER)], *behind])
        self._problems.warn(
            at.get("bind") or at,
            f"the bind of {', '.join(behind)} is never called: {DEFAULT_BINDER} comes first and binds every pod. Order "
            f'them: bind: {{disabled: [{{name: "*"}}], enabled: [{before}, {{name: {DEFAULT_BINDER}}}]}}',
            field=None if at.get("bind") else "bind",
        )

    def _check_names(self, profiles: Sequence[_Profile]) -> None:
        seen: dict[str, Tree] = {}
        for profile in profiles:
            name = profile.configuration.scheduler_name
            if name and name in seen:
                at = profile.tree.fields["schedulerName"]
                self._problems.error(at, f'Duplicate value: "{seen[name].path}" is also called "{name}"')
            at_name = profile.tree.get("schedulerName")
            if at_name is not None:
                seen[name] = at_name

    def _check_queue_sort(self, profiles: Sequence[_Profile]) -> None:
        """There is one queue, so all profiles must sort it alike."""
        first = profiles[0]
        for profile in profiles[1:]:
            if {"queueSort", MULTI_POINT} & (first.written.broken | profile.written.broken):
                continue
            plugins = profile.tree.get("plugins") or Tree({}, profile.tree.below("plugins"), profile.tree.line)
            own, common = profile.written.at("queueSort"), first.written.at("queueSort")
            if own.as_compared != common.as_compared:
                self._problems.error_at(
                    plugins,
                    "queueSort",
                    f"must be the same for all profiles: {_shown(own)} here, {_shown(common)} in {first.tree.path}",
                )
                continue
            sorters = [use.name for use in profile.configuration.points[Point.QUEUE_SORT]]
            first_sorters = [use.name for use in first.configuration.points[Point.QUEUE_SORT]]
            name = profile.configuration.scheduler_name
            if sorters != first_sorters and len(sorters) == len(first_sorters) == 1:
                self._problems.error(
                    plugins,
                    f'different queue sort plugins for profile "{name}": "{sorters[0]}", first: "{first_sorters[0]}"',
                    field="queueSort",
                )
            elif sorters and _args_of(sorters[0], profile) != _args_of(sorters[0], first):
                self._problems.error(
                    profile.tree.get("pluginConfig") or profile.tree,
                    f'different queue sort plugin args for profile "{name}": they must be the same for all profiles',
                )


def _args_of(plugin: str, profile: _Profile) -> Args | None:
    return profile.configuration.args.get(plugin)


def _shown(plugins: PluginSet) -> str:
    enabled, disabled = plugins.as_compared
    parts = [f"enabled {', '.join(name for name, _ in enabled)}"] * bool(enabled)
    parts += [f"disabled {', '.join(disabled)}"] * bool(disabled)
    return " and ".join(parts) or "the default"


def percentage_of_nodes(fields: Fields, problems: Problems) -> int | None:
    percentage = fields.whole("percentageOfNodesToScore")
    if percentage is not None and not 0 <= percentage <= 100:
        problems.error(fields.tree.fields["percentageOfNodesToScore"], f"not in valid range [0-100], got {percentage}")
    return percentage
