"""A short turn of the readers: `python -m tests.faults.readers` is the long one."""

from pathlib import Path

from tests.faults.readers import run


def test_readers_beside_compaction_retention_and_deletion(tmp_path: Path) -> None:
    counts = run(tmp_path, seconds=12, readers=4, seed=7)
    assert (counts["deaths"], counts["wrong"], counts["readers"]) == (0, 0, 4)
    for what in ("reads", "compactions", "retentions", "deleted records", "deleted topics", "deletions met"):
        assert counts[what] > 0, what
