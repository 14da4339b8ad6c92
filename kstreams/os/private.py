"""Files and folders that only their owner may read (modes 0600 and 0700). Symbolic links in their place are refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def private_folder(path: Path) -> None:
    """Create a folder and its missing parents. Raises OSError if the path is a symbolic link.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "state" / "app"
    >>> private_folder(folder)
    >>> oct(folder.parent.stat().st_mode & 0o777)
    '0o700'
    """
    make_folder(path)
    refuse_link(path)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents. It may be a symbolic link, such as a user's link to another disk."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path, flags: int = 0) -> int:
    """Open a file for reading and writing. Create it if it is missing. Raises OSError if it is a symbolic link."""
    refuse_link(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)


def write_private(path: Path, content: bytes) -> None:
    """Create or replace a file atomically.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "id"
    >>> write_private(path, b"7")
    >>> oct(path.stat().st_mode & 0o777), path.read_bytes()
    ('0o600', b'7')
    """
    refuse_link(path)
    temporary_path = path.with_suffix(".tmp")
    with os.fdopen(private_file(temporary_path, os.O_TRUNC), "wb") as file:
        file.write(content)
    os.replace(temporary_path, path)


def make_private(folder: Path) -> None:
    """Set the modes of all files in a folder. A library may have created them by the umask.

    Raises
    ------
    OSError
        If the folder contains a symbolic link.
    """
    for parent, folders, files in os.walk(folder):
        for names, mode in ((folders, 0o700), (files, 0o600)):
            for path in (os.path.join(parent, name) for name in names):
                current_mode = os.lstat(path).st_mode  # one system call, because the opening of a database waits
                if stat.S_ISLNK(current_mode):
                    raise _link_error(path)
                if current_mode & 0o777 != mode:
                    os.chmod(path, mode)


def refuse_link(path: Path) -> None:
    """Raise OSError if a path is a symbolic link."""
    if path.is_symlink():
        raise _link_error(str(path))


def _link_error(path: str) -> OSError:
    return OSError(errno.ELOOP, "a symbolic link is in the place of a file or folder: replace it by its target", path)


def is_private(path: Path) -> bool:
    """Return True if only its owner may read and write a file."""
    return not path.stat().st_mode & 0o077
