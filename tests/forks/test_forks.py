"""A fork: in the child, what the parent opened is refused with a sentence; the parent goes on as if nothing were."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BEGIN = """
import atexit, os, signal, sys, threading, time
from pathlib import Path
import kstreams as ks
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log

folder = Path(sys.argv[1])
config = {"application.id": "app", "log.dir": folder / "log", "state.dir": folder / "state", "commit.interval.ms": 50}


def refused(name, call):
    try:
        call()
    except ks.KStreamsError as error:
        said = str(error)
        assert f"was opened in process {os.getppid()}" in said and "spawn" in said, said
        print(name, "refused", flush=True)
    else:
        print(name, "was NOT refused", flush=True)


def in_child(work):
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        try:
            work()
        finally:
            sys.stdout.flush()
        sys.exit(0)  # atexit and finalizers of the child run too
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"the child ended with {status}"


def values(topic):
    with open_log(folder / "log") as log, log.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return [row.value.decode() for batch in consumer.poll(1, 1000) for row in batch.rows()]


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


with open_log(folder / "log") as log, log.admin() as admin:
    admin.create_topic("words")
    admin.create_topic("counts")

builder = ks.StreamsBuilder()
words = builder.stream("words", key=str, value=str)
words.group_by(lambda _, word: word, key=str).count("counts").to_stream().to("counts", key=str, value=int)
builder.global_table("counts", key=str, value=int, materialized="all-counts")
"""

LOG = """
log = open_log(folder / "log")
producer, consumer, admin = log.producer({"linger.ms": -1}), log.consumer(), log.admin()
send = producer.send
producer.send("words", b"k", b"before")


def work():
    refused("log", lambda: log.producer())
    refused("send", lambda: producer.send("words", None, b"x"))
    refused("bound", lambda: send("words", None, b"x"))
    refused("flush", lambda: producer.flush())
    refused("poll", lambda: consumer.poll())
    refused("admin", lambda: admin.topics())
    producer.close()
    with log:
        pass
    with open_log(folder / "log") as own, own.producer() as another:
        another.send("words", b"k", b"from the child")


in_child(work)
producer.send("words", b"k", b"after")
producer.close()
assert admin.topics()
print(values("words"))
"""

APPLICATION = """
streams = ks.KafkaStreams(builder, config)
with streams, open_log(folder / "log") as log, log.producer() as producer:
    streams.start()
    producer.send("words", b"k", b"a")
    producer.flush()
    until(lambda: streams.state.value == "RUNNING")
    view, everywhere = streams.store("counts"), streams.store("all-counts")
    committed = streams.store("counts", isolation="read_committed")
    until(lambda: view.get("a") is not None)

    def work():
        refused("state", lambda: streams.state)
        refused("store", lambda: streams.store("counts"))
        refused("view", lambda: view.get("a"))
        refused("global", lambda: everywhere.get("a"))
        refused("committed", lambda: committed.get("a"))
        print("closed", streams.close())
        try:
            with ks.KafkaStreams(builder, {**config, "application.id": "other"}) as other:
                other.start(once=True)
                other.wait()
        except ks.KStreamsError as error:
            print("own:", "RocksDB" in str(error) and "spawn" in str(error))

    in_child(work)
    producer.send("words", b"k", b"a")
    producer.flush()
    until(lambda: view.get("a").value == 2)
print(streams.state.value, list((folder / "state/app").glob("*/rocksdb")) != [])
"""

DRIVER = """
from kstreams.testing import TopologyTestDriver

driver = TopologyTestDriver(builder, config)
topic = driver.create_input_topic("words", key=str, value=str)
topic.pipe_input("k", "a")
store = driver.get_state_store("counts")


def work():
    global driver
    refused("pipe", lambda: topic.pipe_input("k", "b"))
    refused("store", lambda: driver.get_state_store("counts"))
    del driver


in_child(work)
topic.pipe_input("k", "a")
print(store.get("a").value)
driver.close()
"""

WITHIN = """
import concurrent.futures, multiprocessing, subprocess

pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
parent, children = os.getpid(), []


def away(word):
    with multiprocessing.get_context("fork").Pool(1) as processes:
        [shouted] = processes.map(str.upper, [word])
    told = subprocess.run(["echo", shouted], capture_output=True, text=True).stdout.strip()
    return pool.submit(str.lower, told).result()


def forked(word):
    children.append(child := os.fork())
    return word if child else "of the child"  # which goes on where the parent is


builder = ks.StreamsBuilder()
words = builder.stream("words", key=str, value=str)
words.map_values(away, value=str).map_values(forked, value=str).to("counts")
with open_log(folder / "log") as log, log.producer() as producer:
    for word in ("one", "two"):
        producer.send("words", b"k", word.encode())
with ks.KafkaStreams(builder, config) as streams:
    streams.start(once=True)
    streams.wait()
assert os.getpid() == parent, "the child came here"
for child in children:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(values("counts"))
pool.shutdown()
"""

LOCKS = """
streams = ks.KafkaStreams(builder, config)
streams.start()
until(lambda: streams.state.value == "RUNNING")
there, back = os.pipe()
if not os.fork():
    signal.alarm(60)
    os.close(back)
    os.read(there, 1)
    os._exit(0)
lock_it = '''
import sys
from pathlib import Path
from kstreams.os.file_lock import FileLock

FileLock(Path(sys.argv[1]), "It")
'''
import subprocess
lock = str(folder / "state/app/.lock")


def try_lock():
    return subprocess.run([sys.executable, "-c", lock_it, lock], capture_output=True, text=True).stderr


assert f"in use by process {os.getpid()}" in try_lock()
streams.close()
print("free" if not try_lock() else try_lock())
os.write(back, b"x")
"""


def run(tmp_path: Path, program: str) -> list[str]:
    (tmp_path / "program.py").write_text(BEGIN + program)
    command = [sys.executable, "program.py", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
    return done.stdout.splitlines()


def test_a_log_its_producer_and_its_consumer(tmp_path: Path) -> None:
    *child, last = run(tmp_path, LOG)
    assert child == [f"{name} refused" for name in ("log", "send", "bound", "flush", "poll", "admin")]
    assert last == "['from the child', 'before', 'after']"


def test_an_application_and_the_views_of_its_stores(tmp_path: Path) -> None:
    *child, last = run(tmp_path, APPLICATION)
    refused = [f"{name} refused" for name in ("state", "store", "view", "global", "committed")]
    assert child == [*refused, "closed False", "own: True"]
    assert last == "NOT_RUNNING True"


def test_a_test_driver_keeps_its_folder(tmp_path: Path) -> None:
    *child, last = run(tmp_path, DRIVER)
    assert child == ["pipe refused", "store refused"]
    assert last == "2"


def test_functions_of_an_application_may_start_processes(tmp_path: Path) -> None:
    assert run(tmp_path, WITHIN) == ["1", "1", "['one', 'two']"]


def test_a_child_that_lives_longer_holds_no_lock_of_the_parent(tmp_path: Path) -> None:
    assert run(tmp_path, LOCKS) == ["free"]
