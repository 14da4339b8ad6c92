"""Counts the files of `kstreams` whose code runs in one round of a stream thread: with one record, and with a commit.

    python tools/files_touched.py           two figures
    python tools/files_touched.py --list    and the files

The application is a windowed count on the native engine over the embedded log, after a round that has warmed it up. A
file counts if at least one of its functions is called.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import kstreams as ks  # noqa: E402
from kstreams.kernel.clock import ManualClock  # noqa: E402
from tests.native.stepped import stepped  # noqa: E402
from tests.native.world import World  # noqa: E402

PACKAGE = str(ROOT / "kstreams")


def files_of(work: Callable[[], object]) -> set[str]:
    """Run a function, and return the files of the package whose functions were called."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(str(Path(frame.f_code.co_filename).relative_to(ROOT)))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def main(arguments: list[str]) -> None:
    """Print the number of files in a round with one record, and in a round with a commit."""
    for name, files in files_of_rounds().items():
        print(f"{name}: {len(files)} files")
        if "--list" in arguments:
            print(*sorted(files), sep="\n")


def files_of_rounds() -> dict[str, set[str]]:
    """Return the files of a round with one record, and of the commit after it."""
    builder = ks.StreamsBuilder()
    lines = builder.stream("in", key=str, value=str)
    lines.group_by_key().windowed_by(ks.TimeWindows(size=60_000)).count("counts").to_stream().to("out")
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.create("in")
        world.create("out")
        with stepped(world, builder.build(), clock) as application:
            world.write("in", [("a", "x", 1)])
            application.work()
            world.write("in", [("a", "y", 2)])
            record = files_of(application.thread.round)
            commit = files_of(application.thread.commit)
    return {"a round with one record": record, "a round with a record and a commit": record | commit}


if __name__ == "__main__":
    main(sys.argv[1:])
