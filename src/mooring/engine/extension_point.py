"""The extension points that the engine and the binding cycle call, with kube-scheduler's names for them."""

from __future__ import annotations

from enum import Enum


class ExtensionPoint(Enum):
    """`metric_name` is the point's label value; `error_prefix` begins the message when a plugin fails there."""

    PRE_FILTER = ("PreFilter", 'running PreFilter plugin "{}": ')
    FILTER = ("Filter", 'running "{}" filter plugin: ')
    POST_FILTER = ("PostFilter", 'running PostFilter plugin "{}": ')
    PRE_SCORE = ("PreScore", 'running PreScore plugin "{}": ')
    SCORE = ("Score", 'running Score plugins: plugin "{}" failed with: ')
    NORMALIZE = ("ScoreExtensionNormalize", 'running Normalize on Score plugins: plugin "{}" failed with: ')
    WEIGHT = ("Score", 'applying score defaultWeights on Score plugins: plugin "{}" ')
    RESERVE = ("Reserve", 'running Reserve plugin "{}": ')
    UNRESERVE = ("Unreserve", 'running Unreserve plugin "{}": ')
    PERMIT = ("Permit", 'running Permit plugin "{}": ')
    PRE_BIND_PRE_FLIGHT = ("PreBindPreFlight", 'running PreBindPreFlight "{}": ')
    PRE_BIND = ("PreBind", 'running PreBind plugin "{}": ')
    BIND = ("Bind", 'running Bind plugin "{}": ')
    POST_BIND = ("PostBind", 'running PostBind plugin "{}": ')
    PLACEMENT_GENERATE = ("PlacementGenerate", "")
    PLACEMENT_SCORE = ("PlacementScore", 'running PlacementScore plugins: plugin "{}" failed with: ')
    PLACEMENT_NORMALIZE = (
        "PlacementScoreExtensionNormalize",
        'running NormalizePlacementScore on PlacementScore plugins: plugin "{}" failed with: ',
    )
    PLACEMENT_WEIGHT = ("PlacementScore", 'applying score defaultWeights on PlacementScore plugins: plugin "{}" ')

    def __init__(self, metric_name: str, error_prefix: str) -> None:
        self.metric_name = metric_name
        self._error_prefix = error_prefix

    # Members are compared by identity; Enum would hash their names, in Python, on the path of every pod.
    __hash__ = object.__hash__

    def error_prefix(self, plugin: str) -> str:
        return self._error_prefix.format(plugin)
