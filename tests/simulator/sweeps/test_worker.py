"""A worker loads values once, and returns rows of plain values or an error."""

import numpy as np
import pytest

from mooring.simulator import Cluster
from mooring.simulator.sweeps.shipping import shipped
from mooring.simulator.sweeps.worker import (
    BadRows,
    ColumnKinds,
    Lacking,
    RunFailure,
    RunRequest,
    execute,
    forget,
    rows_of,
)


@pytest.fixture
def request_for(request):
    """Builds requests of a sweep that is forgotten afterwards."""
    sweep = request.node.name

    def built(function, plain, shared=None, *, is_sent=True):
        shipments = {name: shipped(value, name) for name, value in {"": function, **(shared or {})}.items()}
        return RunRequest(
            sweep,
            1,
            shipments[""].digest,
            plain,
            {name: each.digest for name, each in shipments.items() if name},
            frozenset(plain),
            {each.digest: each.data for each in shipments.values()} if is_sent else {},
        )

    yield built
    forget(sweep)


def test_a_worker_lacks_values_until_they_were_sent_once(request_for):
    def total(factor, numbers):
        return {"total": factor * sum(numbers)}

    without = request_for(total, {"factor": 2}, {"numbers": [1, 2]}, is_sent=False)
    assert execute(without) == Lacking()
    assert execute(request_for(total, {"factor": 2}, {"numbers": [1, 2]})) == [{"total": 6}]
    assert execute(without) == [{"total": 6}]


def test_a_run_that_raises_reports_its_error_and_the_line(request_for):
    def divide(by):
        return {"x": 1 / by}

    failure = execute(request_for(divide, {"by": 0}))
    assert isinstance(failure, RunFailure)
    assert failure.error.startswith("ZeroDivisionError: division by zero (")
    assert "test_worker.py:" in failure.error
    assert "return" in failure.traceback


def test_a_mistake_in_the_input_is_reported_as_it_is(request_for):
    def read(path):
        Cluster.read(path)

    failure = execute(request_for(read, {"path": "/nowhere/cluster.yaml"}))
    assert isinstance(failure, RunFailure)
    assert failure.error.startswith("The cluster file /nowhere/cluster.yaml cannot be read")


def test_a_run_that_exits_has_failed(request_for):
    failure = execute(request_for(lambda x: exit(x), {"x": 3}))
    assert isinstance(failure, RunFailure)
    assert "SystemExit: 3" in failure.error


def test_rows_have_plain_values():
    returned = {"n": np.int64(3), "x": np.float32(0.5), "curve": np.array([1.0, 2.0]), "t": (1, "a"), "none": None}
    [row] = rows_of(returned, frozenset())
    assert row == {"n": 3, "x": 0.5, "curve": [1.0, 2.0], "t": [1, "a"], "none": None}
    assert type(row["n"]) is int
    assert type(row["x"]) is float
    assert rows_of([], frozenset()) == []


BAD = {
    "nothing": (None, "got None"),
    "a number": (3, "got a int"),
    "a list of numbers": ([3], "got a list"),
    "a column that is a parameter": ({"seed": 1}, 'the column "seed" is taken: a parameter'),
    "the column of errors": ({"error": 1}, 'the column "error" is taken'),
    "a name that is a number": ({1: 1}, "names of columns must be texts, got 1"),
    "an object": ({"x": object()}, 'the column "x" must be a number, a text or a list of these, got a object'),
    "a large number": ({"x": 2**63}, 'the column "x" has a number of more than 64 bits'),
}


@pytest.mark.parametrize(("returned", "message"), BAD.values(), ids=BAD.keys())
def test_anything_else_is_refused(returned, message):
    with pytest.raises(BadRows, match=message):
        rows_of(returned, frozenset({"seed"}))


def test_a_column_has_one_kind_of_value():
    kinds = ColumnKinds()
    assert kinds.add([{"x": 1, "curve": [1, None]}, {"x": None}]) is None
    assert kinds.add([{"x": 2.5, "curve": [0.5]}]) is None
    assert kinds.add([{"x": "many"}]) == 'the column "x" is a text, and a number in other rows'
    assert kinds.add([{"x": True}]) == 'the column "x" is true or false, and a number in other rows'
    assert (
        kinds.add([{"curve": ["a"]}]) == 'the column "curve" is a list of a text, and a list of a number in other rows'
    )
