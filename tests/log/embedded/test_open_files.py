"""The pool of open files: the last user of a folder closes its files, and no others."""

from __future__ import annotations

import os
from pathlib import Path

from kstreams.os.open_files import OpenFiles


def opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def test_the_last_user_of_a_folder_closes_its_files(tmp_path: Path) -> None:
    pool = OpenFiles(100)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        pool.enter(str(tmp_path / folder))
        pool.enter(str(tmp_path / folder))
        for name in ("1", "2"):
            with pool.use(str(tmp_path / folder / name), opened):
                pass
    pool.discard(str(tmp_path / "a" / "1"))
    pool.leave(str(tmp_path / "a"))
    assert len(pool) == 3
    pool.leave(str(tmp_path / "a"))
    assert len(pool) == 2
    with pool.use(str(tmp_path / "b" / "1"), opened) as fd:
        pool.leave(str(tmp_path / "b"))
        pool.leave(str(tmp_path / "b"))
        assert os.fstat(fd)
    assert len(pool) == 0


def test_a_full_pool_closes_the_file_that_was_used_first(tmp_path: Path) -> None:
    pool = OpenFiles(2)
    for name in ("1", "2", "1", "3"):
        with pool.use(str(tmp_path / name), opened):
            pass
    assert len(pool) == 2
