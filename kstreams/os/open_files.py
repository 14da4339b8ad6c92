"""`OpenFiles`: a pool of file descriptors, which closes the least recently used file that is not in use.

The number of open files is limited (`ulimit -n`), and there may be more partitions. The pool opens a file again at its
next use, and only the pool closes files. No lock of the operating system belongs to its descriptors.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TypeVar

from kstreams.errors import TooManyFilesError

T = TypeVar("T")

_FEWEST = 16
_MOST = 8_192


def file_limit() -> int:
    """Return how many files this process may have open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * _MOST if soft == resource.RLIM_INFINITY else soft


class OpenFile:
    """A file of the pool. It stays open inside a `with` block, whose value is the descriptor."""

    __slots__ = ("_pool", "fd", "is_removed", "path", "users")

    def __init__(self, pool: OpenFiles, path: str, fd: int) -> None:
        self._pool = pool
        self.path = path
        self.fd = fd
        self.users = 0
        self.is_removed = False  # from the pool: its last user closes it

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *exc: object) -> None:
        self._pool.give_back(self)


class PinnedFile:
    """A file of the pool that stays open until `unpin`. A `with` block costs nothing."""

    __slots__ = ("_file", "_pool", "fd")

    def __init__(self, pool: OpenFiles, file: OpenFile) -> None:
        self._pool = pool
        self._file = file
        self.fd = file.fd

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *exc: object) -> None:
        """Leave the file open."""

    def unpin(self) -> None:
        """Allow the pool to close the file."""
        self._pool.unpin(self._file)


class OpenFiles:
    """A pool of files. Threads may share it.

    Parameters
    ----------
    most : int
        The number of files that stay open without a user. Half as many may be pinned.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> files, path = OpenFiles(16), Path(tempfile.mkdtemp(), "words")
    >>> for text in (b"a", b"b"):
    ...     with files.use(str(path), lambda path: os.open(path, os.O_RDWR | os.O_CREAT)) as fd:
    ...         _ = os.pwrite(fd, text, path.stat().st_size)
    >>> path.read_bytes(), len(files)
    (b'ab', 1)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pinned = 0
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._folders: Counter[str] = Counter()
        self.renew()

    def renew(self) -> None:
        """Create a new mutex. In a forked child, a thread of the parent may hold the old one."""
        self._mutex = threading.RLock()  # `use` may run out of descriptors, and then closes other files

    def __len__(self) -> int:
        return len(self._files)

    def use(self, path: str, open_file: Callable[[str], int]) -> OpenFile:
        """Return a file for one `with` block, after opening it if it is not open."""
        with self._mutex:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = OpenFile(self, path, open_file(path))
                self._close_unused(self._most)
            else:
                self._files.move_to_end(path)
            file.users += 1
            return file

    def keep(self, path: str, open_file: Callable[[str], int]) -> PinnedFile | None:
        """Return a file that stays open until `unpin`, or None if half of the pool is pinned."""
        with self._mutex:
            if self._pinned >= self._most // 2:
                return None
            file = self.use(path, open_file)
            self._pinned += 1
            return PinnedFile(self, file)

    def unpin(self, file: OpenFile) -> None:
        """End the pinning of a file."""
        with self._mutex:
            self._pinned -= 1
            self.give_back(file)

    def give_back(self, file: OpenFile) -> None:
        """End a use of a file."""
        with self._mutex:
            file.users -= 1
            if file.is_removed and not file.users:
                os.close(file.fd)

    def forget(self, path: str) -> None:
        """Close a file. Its next use opens it again."""
        with self._mutex:
            self._forget(path)

    def enter(self, folder: str) -> None:
        """Count a user of a folder."""
        with self._mutex:
            self._folders[folder] += 1

    def leave(self, folder: str) -> None:
        """Uncount a user of a folder. The last one closes the files of the folder."""
        with self._mutex:
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
                for path in [path for path in self._files if os.path.dirname(path) == folder]:
                    self._forget(path)

    def close_unused(self) -> None:
        """Close all files that are not in use, to free descriptors."""
        with self._mutex:
            self._close_unused(0)

    def _close_unused(self, most: int) -> None:
        if len(self._files) > most:
            unused = [file.path for file in self._files.values() if not file.users]
            for path in unused[: len(self._files) - most]:
                self._forget(path)

    def _forget(self, path: str) -> None:
        file = self._files.pop(path, None)
        if file is not None:
            file.is_removed = True
            if not file.users:
                os.close(file.fd)


POOL = OpenFiles(max(_FEWEST, min(file_limit() // 8, _MOST)))
"""The pool of this process: an eighth of the limit, since RocksDB needs most of the other descriptors."""

os.register_at_fork(after_in_child=POOL.renew)


def opened(open_it: Callable[[], T]) -> T:
    """Call a function that opens a file. If there are no descriptors, close unused files of the pool and try again.

    Raises
    ------
    TooManyFilesError
        If the process may open no more files.
    """
    try:
        return open_it()
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
    POOL.close_unused()
    try:
        return open_it()
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise TooManyFilesError(
            f"All {file_limit()} files that this process may open are open: raise their number with `ulimit -n`."
        ) from error
