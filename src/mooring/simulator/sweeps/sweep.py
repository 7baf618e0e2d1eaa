"""Sweeps: the same function for many parameters, on all cores or on any executor, with results on disk as they come.

sweep({"cluster": cluster, "workload": {"web": web}, "configuration": {"default": None}, "seed": range(10)})
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from mooring.base.errors import Fault, OperatorMistake
from mooring.simulator.sweeps.parameters import MOST_LISTED, Grid, Samples, SweepRun, runs_of
from mooring.simulator.sweeps.progress import OnProgress, ProgressLines, SweepProgress
from mooring.simulator.sweeps.result import SweepResult
from mooring.simulator.sweeps.results_file import Definitions, FinishedRun, ResultsFile
from mooring.simulator.sweeps.shipping import Shipment, shipped
from mooring.simulator.sweeps.simulated_run import Measure, SimulatedRun, check_parameters
from mooring.simulator.sweeps.worker import ColumnKinds, Lacking, Row, RunFailure, RunReply, RunRequest, execute, forget
from mooring.simulator.sweeps.worker_processes import WorkerDied, WorkerProcesses, core_count

MOST_DEATHS = 3
"""A run whose worker dies so often has failed: it may be the reason."""

RunFunction = Callable[..., Mapping[str, Any] | Sequence[Mapping[str, Any]]]
"""Of named parameters; a mapping from columns to values is one row, a list of them are several."""


def sweep(
    parameters: Grid | Samples,
    run: RunFunction | None = None,
    *,
    common: Mapping[str, Any] | None = None,
    measure: Measure | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    version: str = "",
    progress: OnProgress | bool | None = True,
) -> SweepResult:
    """Call `run` with every combination of a grid, or with every sample, and return its rows in the order of the runs.

    Without `run`, each run is a simulation: `cluster`, `workload`, `configuration`, `plugins`, `gates` and `seed` are
    its parameters (the first three may be functions of parameters), its summary is the row, to which `measure` adds
    columns. `common` are parameters of all runs that are no columns.

    Runs are computed by `workers` processes, or by `executor`; `workers` is then how many runs it computes at a time.
    `out` is a Parquet file: the same sweep with the same file resumes, and repeats runs that failed. `version`
    is any text; another one means that earlier results no longer hold. A run that raises has failed, and the sweep goes
    on. Ctrl-C ends it earlier, with what was computed so far. `progress` is called after each run; True prints a line
    now and then.
    """
    if run is not None and measure is not None:
        raise OperatorMistake("measure= is about simulations; add the columns to what run= returns.")
    function = run if run is not None else SimulatedRun(measure)
    runs = runs_of(parameters, common or {})
    check_parameters(function, runs)
    on_progress: OnProgress | None = ProgressLines() if progress is True else progress or None
    file: AbstractContextManager[ResultsFile | None] = nullcontext()
    if out is not None:
        file = ResultsFile(Path(out), Definitions.of(function, version, runs))
    with file as results:
        return _Sweep(function, runs, results, on_progress).run(executor, workers)


class _Attempt(msgspec.Struct):
    """A run on its way."""

    index: int
    deaths: int = 0
    is_lacking: bool = False
    """A worker has not received all of its values: they are sent with it."""


class _Sweep:
    def __init__(
        self,
        function: RunFunction,
        runs: Sequence[SweepRun],
        results: ResultsFile | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._id = secrets.token_hex(8)
        self._runs = runs
        self._results = results
        self._on_progress = on_progress
        self._finished: dict[str, FinishedRun] = {}
        self._restored = self._done = self._failed = 0
        self._columns = ColumnKinds()
        self._function = shipped(function, "The function of the sweep")
        self._shipments: dict[int, Shipment] = {}
        """By the identity of the value: runs share most of them, and hold them."""
        for run in runs:
            for name, value in run.values.items():
                if not _is_plain(value) and id(value) not in self._shipments:
                    self._shipments[id(value)] = shipped(value, f'The parameter "{name}"')
        self._sent: Counter[str] = Counter()
        self._attempts = 0
        self._began = time.monotonic()

    def run(self, executor: Executor | None, workers: int | None) -> SweepResult:
        self._restore()
        waiting = deque(_Attempt(index) for index, run in enumerate(self._runs) if run.key not in self._finished)
        is_interrupted = False
        if waiting:
            own = WorkerProcesses(min(workers or core_count(), len(waiting))) if executor is None else None
            used = own if own is not None else executor
            assert used is not None
            try:
                self._compute(waiting, used, workers or width_of(used))
            except KeyboardInterrupt:
                is_interrupted = True
            finally:
                if own is not None:
                    own.kill()
                forget(self._id)
                if self._results is not None:
                    self._results.flush()
        finished = [self._finished[run.key] for run in self._runs if run.key in self._finished]
        if self._results is not None and not is_interrupted:
            self._results.finish(finished)
        return SweepResult(finished, len(self._runs), restored=self._restored, is_interrupted=is_interrupted)

    def _restore(self) -> None:
        """What an earlier call has computed. Runs that failed are repeated."""
        if self._results is None:
            return
        restored = self._results.restore(self._runs)
        self._finished = {key: run for key, run in restored.items() if run.error is None}
        for run in self._finished.values():
            self._columns.add(run.rows)
        self._restored = len(self._finished)

    def _compute(self, waiting: deque[_Attempt], executor: Executor, width: int) -> None:
        # Twice as many as are computed: a worker never waits for the next, and few runs repeat a shipment.
        in_flight: dict[Future[RunReply], _Attempt] = {}
        try:
            while waiting or in_flight:
                while waiting and len(in_flight) < 2 * width:
                    attempt = waiting.popleft()
                    in_flight[self._submit(executor, attempt, width)] = attempt
                done, _ = wait(in_flight, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda each: in_flight[each].index):
                    if not self._is_over(future, in_flight[future]):
                        waiting.appendleft(in_flight[future])
                    del in_flight[future]
        except BrokenExecutor as error:
            runs = ", ".join(f"[{self._runs[each.index]}]" for each in list(in_flight.values())[:MOST_LISTED])
            kept = "; the same sweep with the same file resumes" if self._results is not None else ""
            raise Fault(
                f"The executor broke: {error} One of these runs may be the reason: {runs}. "
                f"{len(self._finished):,} of {len(self._runs):,} runs have finished{kept}."
            ) from error
        finally:
            for future in in_flight:
                future.cancel()

    def _submit(self, executor: Executor, attempt: _Attempt, width: int) -> Future[RunReply]:
        run = self._runs[attempt.index]
        plain = {name: value for name, value in run.values.items() if _is_plain(value)}
        shipments = {name: self._shipments[id(value)] for name, value in run.values.items() if name not in plain}
        sent = {}
        for each in (self._function, *shipments.values()):
            # The first runs bring a value to as many workers as there are; any other worker that lacks it reports so.
            if attempt.is_lacking or self._sent[each.digest] < width:
                sent[each.digest] = each.data
        self._sent.update(sent.keys())
        self._attempts += 1
        request = RunRequest(
            self._id,
            self._attempts,
            self._function.digest,
            plain,
            {name: each.digest for name, each in shipments.items()},
            frozenset(run.labels),
            sent,
        )
        try:
            return executor.submit(execute, request)
        except RuntimeError as error:
            if isinstance(error, BrokenExecutor):
                raise
            raise BrokenExecutor(f"{error}.") from error

    def _is_over(self, future: Future[RunReply], attempt: _Attempt) -> bool:
        """Whether the run has finished or failed; it is submitted again otherwise."""
        try:
            reply = future.result()
        except BrokenExecutor:
            raise
        except (WorkerDied, CancelledError) as error:
            attempt.deaths += 1
            if attempt.deaths < MOST_DEATHS:
                return False
            cause = str(error) or "the executor cancelled it"
            reply = RunFailure(f"{cause}; this happened {attempt.deaths} times with this run")
        except Exception as error:  # of the executor itself: Dask gives up on a run that kills its workers
            reply = RunFailure(f"{type(error).__name__}: {error}")
        if isinstance(reply, Lacking):
            attempt.is_lacking = True
            return False
        self._record(attempt.index, reply)
        return True

    def _record(self, index: int, reply: list[Row] | RunFailure) -> None:
        run = self._runs[index]
        if isinstance(reply, list) and (problem := self._columns.add(reply)) is not None:
            reply = RunFailure(problem)
        if isinstance(reply, RunFailure):
            finished = FinishedRun(run.labels, [], reply.error, reply.traceback)
            self._failed += 1
        else:
            finished = FinishedRun(run.labels, reply)
        self._finished[run.key] = finished
        self._done += 1
        if self._results is not None:
            self._results.add(finished)
        if self._on_progress is not None:
            seconds = time.monotonic() - self._began
            self._on_progress(SweepProgress(len(self._runs), self._restored, self._done, self._failed, seconds))


def width_of(executor: Executor) -> int:
    """How many runs it computes at a time, as far as that can be seen."""
    if isinstance(executor, WorkerProcesses):
        return executor.workers
    if (client := getattr(executor, "_client", None)) is not None and hasattr(client, "nthreads"):  # Dask's
        threads: Mapping[str, int] = client.nthreads()
        return max(1, sum(threads.values()))
    most = getattr(executor, "_max_workers", None)  # those of the standard library, and others after them
    return most if isinstance(most, int) else core_count()


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)
