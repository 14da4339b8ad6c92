"""An application between a source and a sink is killed and operated at random moments: every row arrives once."""

import random
import time
from pathlib import Path

import pytest

from kstreams.connectors.connectors_topic import ConnectorControl, TargetState, TaskControl, change_control
from kstreams.log import open_log
from kstreams.testing.connectors import order_of
from tests.connectors.systems import orders_in
from tests.log.embedded.files import kill, run, start

APPLICATION = """
import sys
from pathlib import Path
import kstreams as ks
from tests.connectors.systems import Database, Numbered
folder = Path(sys.argv[1])
builder = ks.StreamsBuilder()
source = Numbered(int(sys.argv[2]), sys.argv[4], batch=500, tasks=4)
orders = builder.stream(source, name="orders").filter(lambda key, order: order.id >= 0)
orders.to(Database(folder / "copy.db"), name="copy")
settings = {
    "application.id": "app", "log.dir": folder / "log", "state.dir": folder / sys.argv[3], "commit.interval.ms": 50,
    "processing.guarantee": "exactly_once_v2",
}
with ks.KafkaStreams(builder, settings) as streams:
    streams.start()
    streams.wait()
"""
BOUNDED = APPLICATION.replace("streams.start()", "streams.start(until_end=True)")


def test_a_bounded_run_goes_on_at_once_where_a_killed_process_was(tmp_path: Path) -> None:
    """The killed process is still a member of the groups of source and sink."""
    database = tmp_path / "copy.db"
    process = start(APPLICATION, tmp_path, 1_000, "one", "ab")
    deadline = time.monotonic() + 60
    while len(orders_in(database)) < 2_000 and time.monotonic() < deadline:
        time.sleep(0.05)
    kill(process)
    run(BOUNDED, tmp_path, 1_000, "one", "abcd")
    assert orders_in(database) == [order_of(number) for number in range(4_000)]


@pytest.mark.parametrize(
    ("kills", "rows", "seed"), [(3, 20_000, 1), pytest.param(30, 100_000, 2, marks=[pytest.mark.slow])]
)
def test_killed_processes_lose_and_repeat_nothing(tmp_path: Path, kills: int, rows: int, seed: int) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    database = tmp_path / "copy.db"
    processes = {name: start(APPLICATION, tmp_path, rows // 4, name, "abcd") for name in ("one", "two")}
    try:
        for _ in range(kills):
            time.sleep(chosen.uniform(0.5, 3.0))
            name = chosen.choice(sorted(processes))
            kill(processes[name])
            processes[name] = start(APPLICATION, tmp_path, rows // 4, name, "abcd")
        deadline = time.monotonic() + 240
        while len(orders_in(database)) < rows and time.monotonic() < deadline:
            assert all(process.poll() is None for process in processes.values())
            time.sleep(0.2)
    finally:
        for process in processes.values():
            kill(process)
    assert orders_in(database) == [order_of(number) for number in range(rows)]


def paused(control: ConnectorControl) -> ConnectorControl:
    return ConnectorControl(control.identity, TargetState.PAUSED, control.tasks)


def resumed(control: ConnectorControl) -> ConnectorControl:
    return ConnectorControl(control.identity, TargetState.STARTED, control.tasks)


def restarted(control: ConnectorControl) -> ConnectorControl:
    tasks = {number: TaskControl(control.task(number).restarts + 1) for number in range(4)}
    return ConnectorControl(control.identity, control.target_state, tasks)


@pytest.mark.slow
def test_processes_that_are_killed_while_connectors_are_paused_and_restarted_lose_and_repeat_nothing(
    tmp_path: Path,
) -> None:
    rows = 60_000
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    database = tmp_path / "copy.db"
    processes = {name: start(APPLICATION, tmp_path, rows // 4, name, "abcd") for name in ("one", "two")}
    try:
        with open_log(tmp_path / "log") as log:
            for _ in range(30):
                time.sleep(chosen.uniform(0.2, 1.5))
                connector = chosen.choice(["orders-feed", "copy-sink"])
                change_control(log, "app", connector, chosen.choice([paused, resumed, restarted, restarted]))
                if chosen.random() < 0.4:
                    name = chosen.choice(sorted(processes))
                    kill(processes[name])
                    processes[name] = start(APPLICATION, tmp_path, rows // 4, name, "abcd")
            for connector in ("orders-feed", "copy-sink"):
                change_control(log, "app", connector, resumed)
        deadline = time.monotonic() + 240
        while len(orders_in(database)) < rows and time.monotonic() < deadline:
            assert all(process.poll() is None for process in processes.values())
            time.sleep(0.2)
    finally:
        for process in processes.values():
            kill(process)
    assert orders_in(database) == [order_of(number) for number in range(rows)]
