"""Mistakes that are put into a copy of kstreams, which the fault runs must catch: `python -m tests.faults.mutations`.

For each mutation it prints the number of seeds after which a scenario was violated. The exit status is 1 when one is
not caught with `--seeds` seeds. `--only NAME` runs one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.faults.judged_run import ROOT

LOG = "kstreams/log/embedded"


class Mutation(NamedTuple):
    """A mistake in one file, and the scenario that catches it.

    Parameters
    ----------
    name : str
    scenario : str
    file : str
    correct, mistaken : str
        Text of the file, and what stands in its place.
    """

    name: str
    scenario: str
    file: str
    correct: str
    mistaken: str


MUTATIONS = [
    Mutation(
        "transaction-not-synced",
        "power-loss",
        f"{LOG}/producer.py",
        "        self._writer.sync()\n        return transaction",
        "        return transaction",
    ),
    Mutation(
        "journal-not-synced",
        "power-loss",
        f"{LOG}/catalogue/journaled_database.py",
        "            self._disk.sync(self._file.fileno())",
        "            pass",
    ),
    Mutation(
        "head-of-another-boot-trusted",
        "power-loss",
        f"{LOG}/segments/partition.py",
        "return head is not None and head.boot == boot_id()",
        "return head is not None",
    ),
    Mutation(
        "torn-end-not-cut",
        "power-loss",
        f"{LOG}/segments/partition.py",
        "        _cut(path, disk, end, size)",
        "        pass",
    ),
    Mutation(
        "transaction-of-a-dead-producer-committed",
        "crash-points",
        f"{LOG}/catalogue/transactions.py",
        '_finish(database, "producer_id = ?", (later.id,), TransactionState.ABORTED)',
        '_finish(database, "producer_id = ?", (later.id,), TransactionState.COMMITTED)',
    ),
    Mutation(
        "commit-before-its-flush",
        "crash-points",
        f"{LOG}/producer.py",
        "        self.flush()\n        if self._transaction_error",
        "        if self._transaction_error",
    ),
    Mutation(
        "offsets-not-in-the-transaction",
        "crash-points",
        f"{LOG}/catalogue/transactions.py",
        "            store_offsets(database, group, offsets)\n\n\ndef commit_prepared",
        "            pass\n\n\ndef commit_prepared",
    ),
    Mutation(
        "end-published-before-its-frames",
        "crash-points",
        f"{LOG}/segments/appender.py",
        "                disk.write_at(fd, parts, head.position)",
        "                self.partition.publish(grown)\n                disk.write_at(fd, parts, head.position)",
    ),
    Mutation(
        "change-of-a-dead-writer-not-taken-over",
        "crash-points",
        f"{LOG}/catalogue/journaled_database.py",
        "        if state is None or self._journal.size() != state.position:\n"
        "            state = self._resynchronized(state)",
        "        if state is None:\n            state = self._resynchronized(state)",
    ),
    Mutation(
        "failed-write-acknowledged",
        "disk-full",
        f"{LOG}/segments/appender.py",
        "            except (OSError, FencedError):\n"
        "                disk.cut(fd, head.position)  # at once: a torn head is rebuilt from the segment\n"
        "                raise",
        "            except (OSError, FencedError):\n                self.partition.publish(grown)",
    ),
]


def seeds_until_caught(mutation: Mutation, seeds: int) -> int | None:
    """Return the number of seeds that it takes; None if no seed catches the mutation."""
    with tempfile.TemporaryDirectory(prefix="kstreams-mutation-") as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "kstreams", copy / "kstreams", ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "tests").symlink_to(ROOT / "tests")
        text = (copy / mutation.file).read_text()
        if text.count(mutation.correct) != 1:
            raise ValueError(f"{mutation.name}: {mutation.file} has changed, write the mutation anew")
        (copy / mutation.file).write_text(text.replace(mutation.correct, mutation.mistaken))
        for seed in range(1, seeds + 1):
            command = [sys.executable, "-m", "tests.faults", mutation.scenario, "--seed", str(seed)]
            environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
            ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
            if b"VIOLATED" in ended.stdout or b"DamagedError" in ended.stderr:
                return seed
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=[mutation.name for mutation in MUTATIONS])
    options = parser.parse_args()
    survivors = 0
    for mutation in MUTATIONS:
        if options.only in (None, mutation.name):
            seeds = seeds_until_caught(mutation, options.seeds)
            survivors += seeds is None
            outcome = "NOT CAUGHT" if seeds is None else f"seeds until it was caught: {seeds}"
            sys.stdout.write(f"{mutation.name}: {mutation.scenario}, {outcome}\n")
            sys.stdout.flush()
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
