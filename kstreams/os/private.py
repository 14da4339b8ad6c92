"""Files and folders for their owner alone, modes 0600 and 0700; what stands in their place as a link is refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def private_folder(path: Path) -> None:
    """Make a folder and what is missing above it; OSError where a symbolic link has its name.

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
    """The same for a folder that the user chose, who may have made a link to another disk."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path, flags: int = 0) -> int:
    """Open for reading and writing, made if it is not there; OSError where a symbolic link has its name."""
    refuse_link(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)


def write_private(path: Path, content: bytes) -> None:
    """Put a whole file in the place of what is there.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "id"
    >>> write_private(path, b"7")
    >>> oct(path.stat().st_mode & 0o777), path.read_bytes()
    ('0o600', b'7')
    """
    refuse_link(path)
    scratch = path.with_suffix(".tmp")
    with os.fdopen(private_file(scratch, os.O_TRUNC), "wb") as file:
        file.write(content)
    os.replace(scratch, path)


def make_private(folder: Path) -> None:
    """Set the modes of all files in a folder that was filled by a library that follows the umask.

    Raises
    ------
    OSError
        When there is a symbolic link in it.
    """
    for place, folders, files in os.walk(folder):
        for names, mode in ((folders, 0o700), (files, 0o600)):
            for path in (os.path.join(place, name) for name in names):
                current_mode = os.lstat(path).st_mode  # asked once: whoever opens a database waits for this
                if stat.S_ISLNK(current_mode):
                    raise _refused(path)
                if current_mode & 0o777 != mode:
                    os.chmod(path, mode)


def make_private_on(filesystem: object, *paths: str) -> None:
    """The same for files and folders that pyarrow made, where its file system is that of this machine."""
    if getattr(filesystem, "type_name", "") == "local":
        for path in paths:
            os.chmod(path, 0o700 if os.path.isdir(path) else 0o600)


def refuse_link(path: Path) -> None:
    """OSError when a path is a symbolic link."""
    if path.is_symlink():
        raise _refused(str(path))


def _refused(path: str) -> OSError:
    return OSError(errno.ELOOP, "a symbolic link is in the place of a file or folder; put that itself there", path)


def is_private(path: Path) -> bool:
    """Whether nobody but its owner may read or write a file."""
    return not path.stat().st_mode & 0o077
