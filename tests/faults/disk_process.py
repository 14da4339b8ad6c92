"""The producer of `numbers_process` on a disk that fails at its n-th operation: one life of it.

It prints the position from which it goes on, the position behind each committed transaction, and errors of a full disk.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import kstreams.log.embedded.disk as disks
from kstreams.errors import LogError
from kstreams.log import open_log
from tests.faults.numbers_process import position_of, write_numbers

SECTOR = 512


class FailingDisk(disks.Disk):
    """A disk with a fault at one operation.

    Parameters
    ----------
    fails_at : int
        The number of the operation; 0 for none.
    chance : random.Random
    """

    def __init__(self, fails_at: int, chance: random.Random) -> None:
        self.operations = 0
        self._fails_at = fails_at
        self._chance = chance

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        raw = b"".join(bytes(part) for part in parts)
        if self._is_next():
            self.fail_to_write(fd, raw, position)
        super().write_at(fd, [raw], position)

    def sync(self, fd: int) -> None:
        self._before(self.fail)
        super().sync(fd)

    def cut(self, fd: int, size: int) -> None:
        self._before(self.fail)
        super().cut(fd, size)

    def replace(self, source: Path, target: Path) -> None:
        self._before(self.fail)
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        self._before(self.fail)
        super().sync_folder(folder)

    def fail_to_write(self, fd: int, raw: bytes, position: int) -> None:
        """Write a part of the bytes, and die."""
        super().write_at(fd, [raw[: self._chance.randrange(len(raw) + 1)]], position)
        self.fail()

    def fail(self) -> None:
        """Die at this operation."""
        os.kill(os.getpid(), signal.SIGKILL)

    def _before(self, fail: Callable[[], None]) -> None:
        if self._is_next():
            fail()

    def _is_next(self) -> bool:
        self.operations += 1
        return self.operations == self._fails_at


class FullDisk(FailingDisk):
    """A disk that is full from one operation on, for a few writes."""

    refusals = 3

    def is_spared(self) -> bool:
        """Whether it has room, so that an error must have another cause."""
        return self.refusals == 3

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        self.operations += 1
        raw = b"".join(bytes(part) for part in parts)
        if self._fails_at and self.operations >= self._fails_at and self.refusals:
            self.refusals -= 1
            super(FailingDisk, self).write_at(fd, [raw[: self._chance.randrange(len(raw) + 1)]], position)
            raise OSError(errno.ENOSPC, "No space left on device")
        super(FailingDisk, self).write_at(fd, [raw], position)

    def fail(self) -> None:
        """Only writes need room."""


class PowerLossDisk(FailingDisk):
    """A disk of which a power failure leaves what was synced, and any part of what was written since, by sectors."""

    def __init__(self, fails_at: int, chance: random.Random) -> None:
        super().__init__(fails_at, chance)
        self._synced: dict[str, bytes] = {}
        self._changes: dict[str, list[tuple[int, bytes | None]]] = {}

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        raw = b"".join(bytes(part) for part in parts)
        self._note(fd, position, raw)
        super().write_at(fd, [raw], position)

    def cut(self, fd: int, size: int) -> None:
        self._note(fd, size, None)
        super().cut(fd, size)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path in self._synced:
            self._synced[path] = Path(path).read_bytes()
            self._changes[path].clear()

    def fail_to_write(self, fd: int, raw: bytes, position: int) -> None:
        self.fail()

    def fail(self) -> None:
        """Lose what the disk does not have, and die."""
        for path, content in self._synced.items():
            if Path(path).exists():
                Path(path).write_bytes(self._remains(content, self._changes[path]))
        super().fail()

    def _note(self, fd: int, position: int, raw: bytes | None) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path not in self._synced:
            self._synced[path] = Path(path).read_bytes()
        self._changes.setdefault(path, []).append((position, raw))

    def _remains(self, content: bytes, changes: list[tuple[int, bytes | None]]) -> bytes:
        remaining = bytearray(content)
        for position, raw in changes:
            if raw is None:
                if self._chance.random() < 0.5:
                    del remaining[position:]
                continue
            for start in range(0, len(raw), SECTOR):
                if self._chance.random() < 0.7:
                    part = raw[start : start + SECTOR]
                    remaining.extend(bytes(max(0, position + start - len(remaining))))
                    remaining[position + start : position + start + len(part)] = part
        return bytes(remaining)


class Boot:
    """The file with the id of the boot, of a machine that was started again."""

    def __init__(self, number: int) -> None:
        self._number = number

    def read_text(self) -> str:
        return f"{self._number:032x}"


DISKS = {"crash-points": FailingDisk, "disk-full": FullDisk, "power-loss": PowerLossDisk}


def main(kind: str, folder: str, numbers: int, fails_at: int, seed: int) -> None:
    if kind == "power-loss":
        disks.Path = lambda place: Boot(seed) if str(place).endswith("boot_id") else Path(place)
    disk = DISKS[kind](fails_at, random.Random(seed))
    while True:
        try:
            with open_log(folder, durability="fsync", disk=disk) as log:
                say("position", position_of(log))
                write_numbers(log, numbers, lambda position: say("committed", position))
            return
        except LogError as error:
            if not isinstance(disk, FullDisk) or disk.is_spared():
                raise
            say("refused", str(error).replace("\n", " "))


def say(name: str, value: object) -> None:
    sys.stdout.write(f"{name} {value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
