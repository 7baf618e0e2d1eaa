"""What the scheduler counts and times, under kube-scheduler's names, and what plugins count of their own."""

from mooring.scheduler.metrics.plugin_metrics import PluginMetrics
from mooring.scheduler.metrics.scheduler_metrics import Result, SchedulerMetrics, Sizes

__all__ = ["PluginMetrics", "Result", "SchedulerMetrics", "Sizes"]
