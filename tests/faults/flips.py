"""Flips bits in every kind of file of a killed application and runs it to the end: the scenario `bit-flips`.

Each flip must end in the true results or in an error of kstreams. Wrong results without an error, deaths by a signal,
hangs and errors that are not of kstreams are failures.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.errors import KStreamsError
from tests.faults.scene import Results, finish, stage, story, truth

FLIPS_PER_SCENE = 250
LIMIT_S = 120
PROCESSES = multiprocessing.get_context("forkserver")  # each flip runs in a process without threads of ours before it
PROCESSES.set_forkserver_preload(["tests.faults.scene"])
GOOD = ("exact", "refused")
KINDS = {
    ".log": "segment",
    ".index": "index",
    "head": "head",
    "catalogue.sqlite": "catalogue",
    "catalogue.journal": "catalogue journal",
    "catalogue.sqlite-wal": "catalogue log",
    "catalogue.sqlite-shm": "catalogue shared memory",
    ".sst": "RocksDB table",
    "LOG": "RocksDB messages",
    "MANIFEST": "RocksDB manifest",
    "CURRENT": "RocksDB current",
    "OPTIONS": "RocksDB options",
}


class Flip(NamedTuple):
    """One bit of one file, and what came of it."""

    number: int
    kind: str
    file: str
    place: int
    bit: int
    outcome: str = ""
    message: str = ""


def kind_of(path: Path) -> str:
    """The kind of a file, by its name."""
    if "rocksdb" in path.parts and path.suffix == ".log":
        return "RocksDB log"
    for name in (path.name, path.suffix, path.name.split("-")[0]):
        if name in KINDS:
            return KINDS[name]
    return "other"


def choose(folder: Path, number: int, seed: int) -> Flip:
    """The bit that a number stands for: kinds take turns, within a kind every byte is as likely as any other."""
    chance = random.Random(f"{seed}/{number}")
    by_kind: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size:
            by_kind.setdefault(kind_of(path), []).append(path)
    kind = sorted(by_kind)[number % len(by_kind)]
    files = by_kind[kind]
    path = chance.choices(files, [file.stat().st_size for file in files])[0]
    return Flip(number, kind, str(path.relative_to(folder)), chance.randrange(path.stat().st_size), chance.randrange(8))


def flip(folder: Path, chosen: Flip) -> None:
    """Change the bit on disk."""
    with (folder / chosen.file).open("r+b") as file:
        file.seek(chosen.place)
        byte = file.read(1)[0]
        file.seek(chosen.place)
        file.write(bytes([byte ^ 1 << chosen.bit]))


def attempt(scene: Path, chosen: Flip, expected: Results) -> Flip:
    """Flip one bit in a copy of the scene and run on in a process of its own, so that nothing can bring us down."""
    with tempfile.TemporaryDirectory(prefix="flip-") as work:
        shutil.copytree(scene, Path(work) / "app")
        flip(Path(work) / "app", chosen)
        ended, said = apart(_finish, Path(work) / "app", expected)
    result, message = said or (("hung", "") if ended is None else ("died", f"status {ended}"))
    return chosen._replace(outcome=result, message=message.replace("\n", " "))


def apart(call: Callable[..., Any], *args: Any) -> tuple[int | None, Any]:
    """Call in a fresh process: its exit status (None when its time was over) and what the call returned."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_answer, args=(theirs, call, *args))
    process.start()
    theirs.close()
    try:
        said = ours.recv() if ours.poll(LIMIT_S) else None
    except EOFError:
        said = None
    if said is None and ours.poll(0) is False:
        process.kill()
        process.join()
        return None, None
    process.join()
    return process.exitcode, said


def _answer(connection: Any, call: Callable[..., Any], *args: Any) -> None:
    logging.disable(logging.CRITICAL)
    connection.send(call(*args))


def _finish(folder: Path, expected: Results) -> tuple[str, str]:
    """Run the application of a folder to its end: what came of it, in a word and a message."""
    try:
        found = finish(folder)
    except KStreamsError as error:
        return "refused", str(error)
    except BaseException as error:
        return "bare", f"{type(error).__name__}: {error}"
    missing, extra = expected - found, found - expected
    if missing or extra:
        return "wrong", f"missing {missing.total()}, extra {extra.total()}"
    return "exact", ""


def scenes(numbers: range, seed: int) -> Iterator[tuple[Path, Results, range]]:
    """The numbers, cut by scene: each scene has a story of its own, told by the seed and the scene's number."""
    for first in range(numbers.start - numbers.start % FLIPS_PER_SCENE, numbers.stop, FLIPS_PER_SCENE):
        with tempfile.TemporaryDirectory(prefix="scene-") as work:
            told = story(seed * 1_000 + first // FLIPS_PER_SCENE)
            if apart(stage, Path(work) / "scene", told)[0] != -signal.SIGKILL:
                raise AssertionError("the application of the scene was not killed")
            _, expected = apart(truth, Path(work) / "truth", told)
            yield (
                Path(work) / "scene",
                expected,
                range(max(first, numbers.start), min(first + FLIPS_PER_SCENE, numbers.stop)),
            )


def run(numbers: range, seed: int, jobs: int) -> Iterator[Flip]:
    """Attempt the flips of all numbers, several at a time."""
    for scene, expected, part in scenes(numbers, seed):
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(
                lambda number, at=scene, want=expected: attempt(at, choose(at, number, seed), want), part
            )
