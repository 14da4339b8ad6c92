"""What holds for all commands: help, version, exit status, errors; some of it as a real process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kstreams.cli.commands.application import COMMANDS, command_named
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


def commands() -> list[str]:
    """The names of all commands, those of groups included."""
    tree = {name: getattr(command_named(name), "commands", {}) for name in COMMANDS}
    return [f"{name} {member}".strip() for name, members in tree.items() for member in members or [""]]


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_with_an_example(kstreams, command):
    shown = " ".join(kstreams.ok(*command.split(), "--help").out.split())
    assert "Example" in shown
    assert f"kstreams {command}" in shown.partition("Example")[2]


def test_the_list_of_commands_has_the_first_sentence_of_the_help_of_each():
    for name, command in COMMANDS.items():
        first_paragraph = command_named(name).help.partition("\n\n")[0]
        assert " ".join(first_paragraph.split()) == command.summary


def test_the_list_of_commands_imports_no_command():
    code = (
        "import sys; from kstreams.cli import main; main(['--help']); "
        "assert {'pyarrow', 'numpy', 'kstreams.app'}.isdisjoint(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "consume" in done.stdout


@pytest.fixture
def another_user(kstreams):
    """Rights of a user who owns nothing here, while the block runs."""

    @contextmanager
    def rights() -> Iterator[None]:
        if os.getuid() != 0:
            kstreams.folder.joinpath(".kstreams", "log").chmod(0)
            kstreams.folder.chmod(0o500)
            yield
            return
        for folder in (kstreams.folder, *kstreams.folder.parents[:2]):
            folder.chmod(0o755)
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    yield rights
    kstreams.folder.chmod(0o700)


@pytest.mark.parametrize(
    "command",
    ["topics list", "topics create x", "consume lines", "produce lines", "log verify", "log dump", "init new"],
)
def test_a_missing_permission_is_one_sentence_with_the_cure(kstreams, another_user, command):
    kstreams.ok("topics", "create", "lines")
    kstreams("log", "verify")
    kstreams.ok("log", "dump")
    with another_user():
        refused = kstreams(*command.split())
    assert refused.status == 1
    assert "there is no permission for " in refused.err
    assert "change its owner or mode, or name another place" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [("topics", "list"), ("topics", "create", "a"), ("consume", "a"), ("log", "verify")]
)
def test_a_log_folder_that_is_a_file_is_said(kstreams, arguments):
    (kstreams.folder / "file").write_text("")
    for place in ("file", "file/below"):
        refused = kstreams(*arguments, "--log-dir", place)
        assert refused.status == 1
        assert "file is a file, not a folder: name the folder of the log with --log-dir\n" in refused.err


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
        "import sys; from kstreams.cli.commands.application import COMMANDS, command_named; "
        "[command_named(name) for name in COMMANDS]; "
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
        assert reader.wait(60) == 0
        assert reader.stderr.read() == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_to_a_full_disk_is_an_error(tmp_path):
    with start("topics", "create", "lines", cwd=tmp_path) as created:
        assert created.wait(60) == 0
    with open("/dev/full", "w") as full:
        listed = subprocess.run(
            [COMMAND, "topics", "list"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert listed.returncode == 1
    assert listed.stderr.startswith("kstreams: the disk is full")
    assert len(listed.stderr.splitlines()) == 1
