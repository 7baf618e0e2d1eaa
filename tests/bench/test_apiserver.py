"""The benchmark of the embedded API server runs, and its counts are right."""

from mooring.bench.apiserver import measure


def test_every_watcher_sees_every_pod_that_is_created():
    figure = measure(pods=20, watchers=2, in_flight=4)
    assert (figure.pods, figure.events_seen) == (20, 40)
    assert figure.server_micros > 0
