"""What holds for all commands: help, version, exit status, errors; some of it as a real process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kstreams.cli.main import main, sentence
from kstreams.errors import ConfigError

COMMAND = str(Path(sys.executable).with_name("kstreams"))
HEAVY = ("pyspark", "pandas", "confluent_kafka", "rocksdict")


def start(*arguments: str, cwd: Path, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_version(kstreams):
    assert kstreams.ok("--version").out.startswith("kstreams 0.")


@pytest.mark.parametrize("command", ["run", "submit", "topology", "explain", "produce", "consume", "init", "doctor"])
def test_every_command_has_help_with_an_example(kstreams, command):
    shown = kstreams.ok(command, "--help").out
    assert "Example" in shown
    assert f"kstreams {command}" in shown


def test_an_error_of_ours_is_its_message_and_an_unexpected_one_asks_for_a_report():
    assert sentence(ConfigError("say it otherwise")) == "say it otherwise"
    assert sentence(OSError(errno.ENOSPC, "No space left on device")).startswith("the disk is full")
    assert "please report" in sentence(ValueError("odd"))


def test_debug_shows_the_stack_trace(kstreams):
    with pytest.raises(Exception, match="no log in"):
        main(["topics", "list", "--debug"])
    assert kstreams("topics", "list").status == 1


def test_the_tree_of_commands_loads_no_engine():
    code = (
        "import sys; from kstreams.cli.commands import application; application(); "
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_interrupting_a_consumer_is_status_130_and_silent(tmp_path):
    with start("topics", "create", "lines", cwd=tmp_path) as created:
        assert created.wait(60) == 0
    with start("consume", "lines", "--from-beginning", cwd=tmp_path) as reader:
        with start("produce", "lines", cwd=tmp_path, stdin=subprocess.PIPE) as writer:
            writer.communicate("hello\n", timeout=60)
        assert reader.stdout.readline().endswith("hello\n")
        reader.send_signal(signal.SIGINT)
        assert reader.wait(60) == 130
        assert reader.stderr.read() == ""


def test_a_reader_that_goes_away_ends_the_command_silently(tmp_path):
    with start("topics", "create", "lines", cwd=tmp_path) as created:
        assert created.wait(60) == 0
    with start("produce", "lines", cwd=tmp_path, stdin=subprocess.PIPE) as writer:
        writer.communicate("a long line\n" * 50_000, timeout=60)
    with start("consume", "lines", "--from-beginning", "--until-end", cwd=tmp_path) as reader:
        reader.stdout.readline()
        reader.stdout.close()
        reader.wait(60)
        assert reader.stderr.read() == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_to_a_full_disk_is_an_error(tmp_path):
    with start("topics", "create", "lines", cwd=tmp_path) as created:
        assert created.wait(60) == 0
    with open("/dev/full", "w") as full:
        listed = subprocess.run(
            [COMMAND, "topics", "list"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert listed.returncode != 0
    assert "Traceback" not in listed.stderr
