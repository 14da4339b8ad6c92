"""The lines of a run on standard error, with time, application, thread and task, as JSON or for people."""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kstreams.structured_logs import JsonLines
from tests.cli.test_applications import COMMAND
from tests.native.world import WAIT_S, World, until

APP = """
import logging
import kstreams as ks

config = {"application.id": "shop", "commit.interval.ms": 50, "sasl.password": "tiger"}
log = logging.getLogger("till")


def look(key, order):
    log.warning("%s, and the password tiger", order, extra={"order": order})
    if order == "bad":
        raise ValueError("not with tiger")


topology = ks.StreamsBuilder()
orders = topology.stream("orders", key=str, value=str).peek(look)
orders.group_by_key().count("counts").to_stream().to("counts", key=str, value=int)
"""
ORDERS = [("a", "tea", 1), (None, "no key", 2)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "app.py").write_text(APP)
    world = World(tmp_path)
    world.create("orders")
    world.create("counts")
    return world


def run(world: World, *options: str) -> subprocess.CompletedProcess[str]:
    given = ["--log-dir", str(world.folder / "log"), "--state-dir", str(world.folder / "state")]
    command = [COMMAND, "run", "app.py", *given, *options]
    return subprocess.run(command, cwd=world.folder, check=False, capture_output=True, text=True, timeout=WAIT_S)


def as_json(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_each_line_is_an_object_that_says_where_it_comes_from(world: World) -> None:
    world.write("orders", ORDERS)
    lines = as_json(run(world, "--once", "--log-format", "json").stderr)
    assert {line["application"] for line in lines} == {"shop"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)
    [first, _] = [line for line in lines if line["logger"] == "till"]
    assert (first["level"], first["extra"]) == ("WARNING", {"order": "tea"})
    assert (first["thread"], first["task"]) == ("shop-StreamThread-1", "0_0")
    [dropped] = [line for line in lines if line["logger"] == "kstreams.processor"]
    assert dropped["task"] == "0_0"
    assert "null key" in dropped["message"]
    told = [line for line in lines if line["logger"] == "kstreams.cli"]
    assert any(line["message"].startswith("done: 2 records in, 1 out, 1 dropped") for line in told)
    assert not any("task" in line for line in told)


def test_an_error_is_one_line_with_its_stack_trace_in_a_field(world: World) -> None:
    world.write("orders", [("a", "bad", 1)])
    failed = run(world, "--once", "-c", "logging.format=json")
    assert failed.returncode == 1
    [*_, last] = as_json(failed.stderr)
    assert (last["level"], last["logger"]) == ("ERROR", "kstreams.cli")
    assert "KSTREAM-PEEK" in last["message"]
    assert "ValueError: not with" in last["exception"]


@pytest.mark.parametrize("form", ["json", "human"])
def test_secrets_of_the_configuration_are_in_no_line(world: World, form: str) -> None:
    world.write("orders", [*ORDERS, ("a", "bad", 3)])
    said = run(world, "--once", "--log-format", form, "--serve").stderr
    assert "and the password ****" in said
    assert "ValueError: not with ****" in said
    assert "tiger" not in said
    assert (world.folder / "state/shop/.server/token").read_text() not in said
    assert "/.server/token" in said


def test_people_read_time_level_application_thread_and_task(world: World) -> None:
    world.write("orders", ORDERS)
    said = run(world, "--once", "--log-format", "human").stderr
    assert re.search(
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING shop shop-StreamThread-1 task 0_0 till: tea", said, re.MULTILINE
    )


def test_lines_of_several_processes_are_objects_too(world: World) -> None:
    world.write("orders", ORDERS)
    given = ["--log-dir", str(world.folder / "log"), "--state-dir", str(world.folder / "state")]
    command = [COMMAND, "run", "app.py", "--workers", "2", "--log-format", "json", *given]
    with subprocess.Popen(command, cwd=world.folder, stderr=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stderr is not None
        heard = set[int]()
        while len(heard) < 3:  # the supervisor and two workers
            heard |= {line["process"] for line in as_json(supervisor.stderr.readline())}
        until(lambda: world.table("counts", value=int) == {"a": 1})
        supervisor.send_signal(signal.SIGTERM)
        assert {line["process"] for line in as_json(supervisor.stderr.read())} <= heard
        assert supervisor.wait(WAIT_S) == 0


@pytest.mark.spark
@pytest.mark.slow
def test_on_spark_tasks_write_such_lines_too(world: World) -> None:
    world.write("orders", ORDERS)
    said = run(world, "--once", "--engine", "spark", "--log-format", "json").stderr.splitlines()
    assert not [line for line in said if "tiger" in line]
    lines = as_json("\n".join(line for line in said if line.startswith("{")))
    [first, _] = [line for line in lines if line["logger"] == "till"]
    assert (first["application"], first["task"], first["extra"]) == ("shop", "0_0", {"order": "tea"})


def test_what_a_program_of_its_own_logs_is_left_as_it_is(world: World) -> None:
    world.write("orders", ORDERS)
    program = """
import io, logging
import kstreams as ks
import app

said = io.StringIO()
logging.basicConfig(stream=said, format="mine %(message)s")
settings = {**app.config, "log.dir": "log", "state.dir": "state", "logging.format": "json"}
with ks.KafkaStreams(app.topology, settings) as run:
    run.start(once=True)
    run.wait(60)
assert all(line.startswith("mine ") for line in said.getvalue().splitlines()), said.getvalue()
print(len(said.getvalue().splitlines()))
"""
    (world.folder / "own.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "own.py"], cwd=world.folder, check=False, capture_output=True, text=True, timeout=WAIT_S
    )
    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr


def test_a_formatter_of_a_handler_of_your_own() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        record = logging.LogRecord("till", logging.ERROR, "", 0, "failed", (), (ValueError, error, error.__traceback__))
    found = json.loads(JsonLines({"application.id": "shop"}).format(record))
    assert found["application"] == "shop"
    assert found["exception"].endswith("ValueError: no")
    assert "task" not in found


def line_of(message: str, *args: Any, **attributes: Any) -> dict[str, Any]:
    settings = {"application.id": "shop", "sasl.password": 'ti"g\\er', "ssl.key.password": 'ti"g\\er and more'}
    record = logging.makeLogRecord({"msg": message, "args": args, "name": "till", **attributes})
    [line] = JsonLines(settings).format(record).splitlines()
    found: dict[str, Any] = json.loads(line)
    line.encode()
    return found


def test_a_secret_is_masked_however_it_is_quoted() -> None:
    secret = 'ti"g\\er'
    assert line_of("%s, %r and %s", secret, secret, json.dumps(secret))["message"] == "****, '****' and \"****\""
    assert line_of("m", given=secret, deep={"a": [secret]})["extra"] == {"given": "****", "deep": {"a": ["****"]}}
    assert line_of("it is %s", f"{secret} and more")["message"] == "it is ****"


def test_what_no_json_can_hold_is_a_line_too() -> None:
    assert line_of("key %s", "a\udc80", tries=3) | {"time": 0} == line_of("key %s", "a\\udc80", tries=3) | {"time": 0}
    circle: list[Any] = []
    circle.append(circle)
    assert line_of("m", key="a\udc80", circle=circle)["extra"] == {"key": "a\\udc80", "circle": "[[...]]"}


def test_where_it_was_logged_is_in_the_line_when_asked_for() -> None:
    assert line_of("m", stack_info="Stack:\n  here")["stack"] == "Stack:\n  here"


USERS = """
import logging
import kstreams as ks
{configure}

config = {{"application.id": "shop", "commit.interval.ms": 50}}
log = logging.getLogger("shop.till")
log.info("loading")


def look(key, order):
    log.debug("debug %s", order)
    log.info("info %s", order)
    logging.info("of the root %s", order)
    print("printed", order)


topology = ks.StreamsBuilder()
orders = topology.stream("orders", key=str, value=str).peek(look)
orders.group_by_key().count("counts").to_stream().to("counts", key=str, value=int)
"""


def lines_of(world: World, configure: str, *options: str) -> subprocess.CompletedProcess[str]:
    (world.folder / "app.py").write_text(USERS.format(configure=configure))
    world.write("orders", [("a", "tea", 1)])
    return run(world, "--once", *options)


def test_what_the_users_loggers_say_is_shown_and_nobody_elses_noise(world: World) -> None:
    done = lines_of(world, "")
    shown = [line for line in done.stderr.splitlines() if line.startswith(("INFO", "DEBUG"))]
    assert shown == [
        "INFO shop.till: loading",
        "INFO shop.till: info tea",
        "INFO root: of the root tea",
    ]
    assert done.stdout == "printed tea\n"
    assert "assigned" not in done.stderr


def test_packages_are_quiet_unless_their_level_is_set(world: World) -> None:
    package = world.folder / "lib/site-packages/loud"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import logging\nlogging.getLogger('loud').info('noise of a package')\n")
    begin = f"import sys; sys.path.append({str(package.parent)!r})\n"
    assert "noise of a package" not in lines_of(world, begin + "import loud").stderr
    aloud = begin + "logging.getLogger('loud').setLevel('INFO')\nimport loud"
    assert "INFO loud: noise of a package\n" in lines_of(world, aloud).stderr


def test_a_setting_says_from_which_level_on(world: World) -> None:
    assert "debug tea" in lines_of(world, "", "-c", "logging.level=DEBUG").stderr
    assert "info tea" not in lines_of(world, "", "-c", "logging.level=WARNING").stderr


CONFIGURATIONS = {
    "basicConfig": "logging.basicConfig(level='DEBUG', format='mine %(message)s')",
    "forced": "logging.basicConfig(level='DEBUG', format='mine %(message)s', force=True)",
    "dictConfig": """
import logging.config
logging.config.dictConfig({
    "version": 1, "disable_existing_loggers": False, "formatters": {"mine": {"format": "mine %(message)s"}},
    "handlers": {"mine": {"class": "logging.StreamHandler", "formatter": "mine"}},
    "root": {"level": "DEBUG", "handlers": ["mine"]},
})
""",
}


@pytest.mark.parametrize("configure", CONFIGURATIONS)
def test_an_application_that_configures_logging_has_what_it_asks_for(world: World, configure: str) -> None:
    said = lines_of(world, CONFIGURATIONS[configure]).stderr
    assert said.count("mine info tea\n") == said.count("info tea") == 1
    assert "mine debug tea\n" in said
    assert "INFO shop.till" not in said


def test_the_level_of_a_logger_of_its_own_holds(world: World) -> None:
    said = lines_of(world, "logging.getLogger('shop').setLevel(logging.DEBUG)").stderr
    assert "DEBUG shop.till: debug tea\n" in said


def test_info_lines_are_objects_too(world: World) -> None:
    lines = as_json(lines_of(world, "", "--log-format", "json").stderr)
    [line] = [line for line in lines if line["message"] == "info tea"]
    assert (line["level"], line["logger"], line["task"]) == ("INFO", "shop.till", "0_0")


def test_workers_say_it_as_it_happens(world: World) -> None:
    (world.folder / "app.py").write_text(USERS.format(configure=""))
    world.write("orders", [("a", "tea", 1)])
    given = ["--log-dir", str(world.folder / "log"), "--state-dir", str(world.folder / "state")]
    command = [COMMAND, "run", "app.py", "--workers", "2", *given]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=world.folder, **pipes) as supervisor:
        assert supervisor.stdout is not None
        assert re.fullmatch(r"worker [12]: printed tea\n", supervisor.stdout.readline())
        supervisor.send_signal(signal.SIGTERM)
        assert re.search(r"^worker [12]: INFO shop.till: info tea$", supervisor.communicate()[1], re.MULTILINE)


@pytest.mark.spark
@pytest.mark.slow
def test_on_spark_tasks_show_the_users_lines(world: World) -> None:
    said = lines_of(world, "", "--engine", "spark").stderr
    assert "INFO shop.till: info tea\n" in said
    assert " INFO " not in said
