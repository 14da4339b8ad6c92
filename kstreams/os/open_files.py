"""`OpenFiles`: a pool of file descriptors, which closes the least recently used file that is not in use.

The number of open files is limited (`ulimit -n`), and there may be more partitions. The pool opens a file again at its
next use, and only the pool closes files. No descriptor of the pool may hold a lock of the operating system.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import TypeVar

from kstreams.errors import TooManyFilesError

T = TypeVar("T")

_MIN_POOL_SIZE = 16
_MAX_POOL_SIZE = 8_192


def file_limit() -> int:
    """Return the number of files that this process may open."""
    soft_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * _MAX_POOL_SIZE if soft_limit == resource.RLIM_INFINITY else soft_limit


class OpenFile:
    """A file of the pool. It stays open during a `with` block, which gets the descriptor."""

    __slots__ = ("_pool", "fd", "is_removed", "path", "users")

    def __init__(self, pool: OpenFiles, path: str, fd: int) -> None:
        self._pool = pool
        self.path = path
        self.fd = fd
        self.users = 0
        self.is_removed = False  # True if the last user has to close the file

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *exc: object) -> None:
        self._pool.release(self)


class PinnedFile:
    """A file of the pool that stays open until `unpin`. A `with` block does not access the pool."""

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
    size : int
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

    def __init__(self, size: int) -> None:
        self._size = size
        self._pinned = 0
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._folders: Counter[str] = Counter()
        self._paths: defaultdict[str, set[str]] = defaultdict(set)  # of the open files, by folder
        self.renew()

    def renew(self) -> None:
        """Create a new mutex. In a forked child, a thread of the parent may hold the old one."""
        self._mutex = threading.RLock()  # `use` may run out of descriptors, and then closes other files

    def __len__(self) -> int:
        return len(self._files)

    def use(self, path: str, open_file: Callable[[str], int]) -> OpenFile:
        """Return a file for one `with` block. Open it if it is not open."""
        with self._mutex:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = OpenFile(self, path, open_file(path))
                self._paths[os.path.dirname(path)].add(path)
                self._close_unused(self._size)
            else:
                self._files.move_to_end(path)
            file.users += 1
            return file

    def pin(self, path: str, open_file: Callable[[str], int]) -> PinnedFile | None:
        """Return a file that stays open until `unpin`, or None if half of the pool is pinned."""
        with self._mutex:
            if self._pinned >= self._size // 2:
                return None
            file = self.use(path, open_file)
            self._pinned += 1
            return PinnedFile(self, file)

    def unpin(self, file: OpenFile) -> None:
        """Allow the pool to close a pinned file."""
        with self._mutex:
            self._pinned -= 1
            self.release(file)

    def release(self, file: OpenFile) -> None:
        """End a use of a file."""
        with self._mutex:
            file.users -= 1
            if file.is_removed and not file.users:
                os.close(file.fd)

    def discard(self, path: str) -> None:
        """Close a file. Its next use opens it again."""
        with self._mutex:
            self._discard(path)

    def enter(self, folder: str) -> None:
        """Add a user of a folder."""
        with self._mutex:
            self._folders[folder] += 1

    def leave(self, folder: str) -> None:
        """Remove a user of a folder. The last one closes the files of the folder."""
        with self._mutex:
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
                for path in list(self._paths[folder]):
                    self._discard(path)
                del self._paths[folder]

    def close_unused(self) -> None:
        """Close all files that are not in use, to free descriptors."""
        with self._mutex:
            self._close_unused(0)

    def _close_unused(self, size: int) -> None:
        if len(self._files) > size:
            unused_paths = [file.path for file in self._files.values() if not file.users]
            for path in unused_paths[: len(self._files) - size]:
                self._discard(path)

    def _discard(self, path: str) -> None:
        file = self._files.pop(path, None)
        if file is not None:
            self._paths[os.path.dirname(path)].discard(path)
            file.is_removed = True
            if not file.users:
                os.close(file.fd)


POOL = OpenFiles(max(_MIN_POOL_SIZE, min(file_limit() // 8, _MAX_POOL_SIZE)))
"""The pool of this process: an eighth of the limit, because RocksDB needs most of the other descriptors."""

os.register_at_fork(after_in_child=POOL.renew)


def retry_open(open_file: Callable[[], T]) -> T:
    """Call a function that opens a file. If there are no descriptors, close unused files of the pool and try again.

    Raises
    ------
    TooManyFilesError
        If the process may open no more files.
    """
    try:
        return open_file()
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
    POOL.close_unused()
    try:
        return open_file()
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise TooManyFilesError(
            f"This process has reached its limit of {file_limit()} open files: raise the limit with `ulimit -n`."
        ) from error
