"""Workers obey the control of their connector, and write the status of their tasks."""

from contextlib import ExitStack
from pathlib import Path

from kstreams.connectors.connectors_topic import (
    ConnectorControl,
    TargetState,
    TaskControl,
    change_control,
    read_connectors,
)
from kstreams.connectors.herder import Herder
from kstreams.connectors.task_status import TaskState
from kstreams.connectors.worker import Worker
from kstreams.kernel.clock import ManualClock, SystemClock
from tests.connectors.running import copy_in, log_with_topics, running, wait_until, worker_to
from tests.connectors.systems import Database, Numbered, orders, orders_in


def states(worker: Worker) -> set[TaskState]:
    return {status.state for status in worker.statuses().values()}


def test_a_restart_opens_a_task_that_waits_after_an_error(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    (tmp_path / "away").touch()
    clock = ManualClock(1_000)  # which never comes to the end of the wait
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        copy_in(log, Numbered(100, ["a"]))
        worker = worker_to(log, Database(database), resources, clock=clock)
        with running(worker):
            wait_until(lambda: states(worker) == {TaskState.RESTARTING})
            (tmp_path / "away").unlink()
            worker.obey(ConnectorControl("app-out", tasks={0: TaskControl(restarts=1)}))
            wait_until(lambda: TaskState.RUNNING in states(worker))
            assert [status.state for _, status in sorted(worker.statuses().items())] == [
                TaskState.RUNNING,
                TaskState.RESTARTING,
                TaskState.RESTARTING,
            ]


def test_a_paused_worker_commits_what_it_has_and_holds_nothing_open(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    clock = ManualClock(1_000)  # with which no commit is ever due
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        copy_in(log, Numbered(100, ["a"]))
        worker = worker_to(log, Database(database), resources, clock=clock)
        with running(worker):
            wait_until(lambda: states(worker) == {TaskState.RUNNING})
            worker.obey(ConnectorControl("app-out", TargetState.PAUSED))
            wait_until(lambda: states(worker) == {TaskState.PAUSED})
            copied = len(orders_in(database))
            assert copied == sum(status.rows for status in worker.statuses().values())
            copy_in(log, Numbered(200, ["a"]))
        assert len(orders_in(database)) == copied


def test_a_herder_hands_controls_out_and_writes_statuses(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        copy_in(log, Numbered(100, ["a"]))
        worker = worker_to(log, Database(database), resources)
        herder = Herder({"out": worker}, log, "app", SystemClock())
        herder.start()
        with running(worker):
            wait_until(lambda: orders_in(database) == orders(100))
            change_control(log, "app", "out", lambda control: ConnectorControl(control.identity, TargetState.PAUSED))
            wait_until(lambda: states(worker) == {TaskState.PAUSED})
        herder.stop()
        records = [read_connectors(log, "app").tasks["out", number] for number in range(3)]
        assert {record.state for record in records} == {TaskState.UNASSIGNED}
        assert sum(record.rows for record in records) == 100
