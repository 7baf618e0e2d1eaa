"""Metrics that are not shown, and labels whose values are kept to a list."""

from __future__ import annotations

from mooring.scheduler.serving.metric_filter import MetricFilter

TEXT = b"""\
# HELP pods Pods by queue.
# TYPE pods gauge
pods{queue="active"} 1.0
pods{queue="gated"} 2.0
pods{queue="a \\"quoted\\", one"} 4.0
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1",result="ok"} 1.0
took_seconds_bucket{le="+Inf",result="ok"} 1.0
took_seconds_bucket{le="0.1",result="odd"} 2.0
took_seconds_bucket{le="+Inf",result="odd"} 3.0
took_seconds_count{result="ok"} 1.0
# HELP up Whether.
# TYPE up gauge
up 1.0
"""


def test_nothing_is_changed_unless_configured():
    assert MetricFilter().filtered(lambda: TEXT)() == TEXT
    assert MetricFilter(["none_such"]).apply(TEXT) == TEXT


def test_a_disabled_metric_is_not_shown():
    shown = MetricFilter(["pods", "up"]).filtered(lambda: TEXT)().decode()
    assert shown.startswith("# HELP took_seconds")
    assert shown.endswith('took_seconds_count{result="ok"} 1.0\n')


def test_values_that_are_not_listed_are_added_up_as_unexpected():
    shown = MetricFilter(allowed={"pods": {"queue": {"active"}}}).apply(TEXT).decode()
    assert 'pods{queue="active"} 1.0\npods{queue="unexpected"} 6.0\n# HELP took_seconds' in shown


def test_a_histogram_keeps_its_buckets():
    shown = MetricFilter(allowed={"took_seconds": {"result": {"none"}}}).apply(TEXT).decode()
    assert 'took_seconds_bucket{le="0.1",result="unexpected"} 3.0\n' in shown
    assert 'took_seconds_bucket{le="+Inf",result="unexpected"} 4.0\n' in shown
