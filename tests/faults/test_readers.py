"""A short turn of the readers: `python -m tests.faults readers-beside-compaction` is the long one."""

from pathlib import Path

from tests.faults.readers import Counts, run

SECONDS, MOST_TURNS = 5, 6
MET = ("reads", "compactions", "retentions", "deleted records", "deleted topics", "deletions met")


def test_readers_beside_compaction_retention_and_deletion(tmp_path: Path) -> None:
    """As many turns as it takes until they have met everything: one, where the machine is not busy."""
    met = Counts()
    for turn in range(MOST_TURNS):
        counts = run(tmp_path / str(turn), SECONDS, readers=4, seed=7 + turn)
        assert (counts["deaths"], counts["wrong"], counts["readers"]) == (0, 0, 4)
        met += counts
        if all(met[what] for what in MET):
            return
    raise AssertionError(f"not everything was met: {met}")
