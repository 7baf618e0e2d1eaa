"""What the scheduler counts and times, under kube-scheduler's names, and what plugins count of their own."""

from mooring.scheduler.metrics.plugin_metrics import PluginMetrics
from mooring.scheduler.metrics.scheduler_metrics import AttemptResult, SchedulerMetrics, Sizes

__all__ = ["AttemptResult", "PluginMetrics", "SchedulerMetrics", "Sizes"]
