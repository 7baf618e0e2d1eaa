"""The benchmark of metrics runs and measures what it claims. How small the share is, only the benchmark reports."""

from mooring.bench.metrics import measure


def test_metric_calls_are_measured_as_a_part_of_an_attempt():
    figure = measure(nodes=50, pods=50)
    assert figure.plugin_calls > 20, "the decision was timed, with the default plugins"
    assert figure.metric_micros > 0
    assert 0 < figure.share_of_attempt < 1, figure
