"""A pool of file descriptors: of the files that nobody uses now, the one used longest ago is closed first.

A process may open only so many files (`ulimit -n`), and partitions can be many more. A file of the pool is opened
anew when it is used again; nobody but the pool closes it. No lock of the operating system belongs to its descriptors.
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
    """How many files this process may have open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * _MOST if soft == resource.RLIM_INFINITY else soft


class OpenFile:
    """A file of the pool, which stays open inside a `with` block; entering gives the descriptor."""

    __slots__ = ("_pool", "fd", "is_out", "path", "users")

    def __init__(self, pool: OpenFiles, path: str, fd: int) -> None:
        self._pool = pool
        self.path = path
        self.fd = fd
        self.users = 0
        self.is_out = False  # of the pool: closed by its last user

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *exc: object) -> None:
        self._pool.give_back(self)


class PinnedFile:
    """A file of the pool that stays open until `unpin`; it may be used in any number of `with` blocks, at no cost."""

    __slots__ = ("_file", "_pool", "fd")

    def __init__(self, pool: OpenFiles, file: OpenFile) -> None:
        self._pool = pool
        self._file = file
        self.fd = file.fd

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *exc: object) -> None:
        """It stays open."""

    def unpin(self) -> None:
        """The pool may close it now."""
        self._pool.unpin(self._file)


class OpenFiles:
    """The pool. Threads may share it.

    Parameters
    ----------
    most : int
        How many files stay open while nobody uses them; half as many may be kept.

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
        self._kept = 0
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._folders: Counter[str] = Counter()
        self.renew()

    def renew(self) -> None:
        """A thread that did not come along in a fork may hold the mutex."""
        self._mutex = threading.RLock()  # who runs out of descriptors inside `use` closes others

    def __len__(self) -> int:
        return len(self._files)

    def use(self, path: str, open_file: Callable[[str], int]) -> OpenFile:
        """A file for one `with` block; opened if it is not open."""
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
        """A file for as long as somebody wants it; None when so many are kept that others would have no room."""
        with self._mutex:
            if self._kept >= self._most // 2:
                return None
            file = self.use(path, open_file)
            self._kept += 1
            return PinnedFile(self, file)

    def unpin(self, file: OpenFile) -> None:
        """The end of keeping it."""
        with self._mutex:
            self._kept -= 1
            self.give_back(file)

    def give_back(self, file: OpenFile) -> None:
        """The end of a use."""
        with self._mutex:
            file.users -= 1
            if file.is_out and not file.users:
                os.close(file.fd)

    def forget(self, path: str) -> None:
        """Close a file, so that its next use opens it anew."""
        with self._mutex:
            self._forget(path)

    def enter(self, folder: str) -> None:
        """Somebody uses files of a folder from now on."""
        with self._mutex:
            self._folders[folder] += 1

    def leave(self, folder: str) -> None:
        """Nobody does any more, if this was the last: its files are closed."""
        with self._mutex:
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
                for path in [path for path in self._files if os.path.dirname(path) == folder]:
                    self._forget(path)

    def close_unused(self) -> None:
        """Close whatever is not in use: somebody needs descriptors."""
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
            file.is_out = True
            if not file.users:
                os.close(file.fd)


POOL = OpenFiles(max(_FEWEST, min(file_limit() // 8, _MOST)))
"""That of the process, as the limit is the process's too: an eighth of it, since RocksDB needs most of the others."""

os.register_at_fork(after_in_child=POOL.renew)


def opened(open_it: Callable[[], T]) -> T:
    """What a function opens, if need be after the files of the pool that rest were closed.

    Raises
    ------
    TooManyFilesError
        When all that this process may open is in use.
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
