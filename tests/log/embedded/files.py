"""Where an embedded log keeps its files, for tests that damage them."""

import os
import signal
import subprocess
import sys
from pathlib import Path


def segments(folder: Path, topic: str = "words", partition: int = 0) -> list[Path]:
    """The segment files of a partition, oldest first."""
    return sorted(folder.glob(f"topics/{topic}@*/{partition}/*.log"))


def indexes(folder: Path) -> list[Path]:
    """All index files."""
    return sorted(folder.glob("topics/*/*/*.index"))


def head(folder: Path, topic: str = "words", partition: int = 0) -> Path:
    """The head file of a partition."""
    (path,) = folder.glob(f"topics/{topic}@*/{partition}/head")
    return path


def flip(path: Path, bit: int) -> None:
    """Turn one bit of a file over, in place."""
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """Run a Python program in another process; it speaks through its standard output, and its input stays open."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def run(program: str, *arguments: object) -> str:
    """Run a Python program to its end, which must be a good one; what it printed."""
    process = start(program, *arguments)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, f"ended with {process.returncode}: {output[-2000:]}"
    return output


def kill(process: "subprocess.Popen[str]") -> str:
    """End a process without warning; what it had printed."""
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    output = process.stdout.read()
    process.wait(timeout=60)
    return output
