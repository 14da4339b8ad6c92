"""`LocalFolder` and `ObjectFolder`: a folder of files that are moved as a whole, and of states that are replaced.

Object stores are reached by obstore. A state is a small file that a writer replaces only if it is as the writer read
it: under a lock on the local disk, by a conditional put (`If-Match`) in an object store.
"""

from __future__ import annotations

import fcntl
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from kstreams.connectors.object_stores import remedy
from kstreams.errors import ConnectorError, ConnectorUnavailableError, FencedError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

StateTag: TypeAlias = "Mapping[str, str] | bytes"
"""What identifies the content of a state: the object's tag, or the bytes of a local file."""

StorageOptions: TypeAlias = Mapping[str, Any]
"""The options of obstore's stores: `endpoint`, `access_key_id`, `region`, `client_options`, ..."""


class State(NamedTuple):
    """The content of a state, and what identifies it."""

    content: bytes
    tag: StateTag


class NewFile(Protocol):
    """A file that is being written."""

    def write(self, data: Any, /) -> int:
        """Write bytes."""
        ...

    def tell(self) -> int:
        """Return the number of bytes so far."""
        ...

    def close(self) -> None:
        """Make the file durable."""
        ...

    def discard(self) -> None:
        """Release the file, which need not be durable."""
        ...


class Folder(Protocol):
    """A folder on the local disk or in an object store. Names are relative, with slashes."""

    def read_state(self, name: str) -> State | None:
        """Return a state; None if there is none."""
        ...

    def replace_state(self, name: str, content: bytes, expected: State | None) -> State:
        """Replace a state that is as expected.

        Raises
        ------
        FencedError
            If it is not: another writer has replaced it.
        """
        ...

    def create(self, name: str) -> NewFile:
        """Return a new file to write to. It exists when it is closed, at the latest."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Return a file to read from."""
        ...

    def move(self, source: str, target: str) -> None:
        """Move a file, or do nothing if the source does not exist."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; those that do not exist are no error."""
        ...

    def sizes(self, under: str = "") -> dict[str, int]:
        """Return the size in bytes of each file below a folder."""
        ...


def open_folder(location: str | os.PathLike[str], options: StorageOptions | None = None) -> Folder:
    """Return a folder by its path, or by a URI such as `s3://bucket/folder`.

    Raises
    ------
    ConnectorError
        If obstore is not installed or does not know the URI.
    """
    text = os.fspath(location)
    parts = urlsplit(text)
    if len(parts.scheme) < 2:  # a path; one letter is a drive
        return LocalFolder(Path(text))
    if parts.scheme == "file":
        return LocalFolder(Path(unquote(parts.path)))
    return ObjectFolder(text, options or {})


class LocalFolder:
    """A folder on the local disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_state(self, name: str) -> State | None:
        try:
            with _allowed(self._path / name):
                content = (self._path / name).read_bytes()
        except FileNotFoundError:
            return None
        return State(content, content)

    def replace_state(self, name: str, content: bytes, expected: State | None) -> State:
        path = self._path / name
        _create_folder(path.parent)
        with _allowed(path), _locked(path.with_name(path.name + ".lock")):
            if self.read_state(name) != expected:
                raise _changed(path)
            new = path.with_name(path.name + ".new")
            with _DurableFile(new) as file:
                file.write(content)
            new.replace(path)
            _sync_folder(path.parent)
        return State(content, content)

    def create(self, name: str) -> NewFile:
        path = self._path / name
        _create_folder(path.parent)
        with _allowed(path):
            return _DurableFile(path)

    def open(self, name: str) -> BinaryIO:
        with _allowed(self._path / name):
            return (self._path / name).open("rb")

    def move(self, source: str, target: str) -> None:
        path = self._path / target
        _create_folder(path.parent)
        with _allowed(path), suppress(FileNotFoundError):
            (self._path / source).replace(path)
            _sync_folder(path.parent)

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            (self._path / name).unlink(missing_ok=True)

    def sizes(self, under: str = "") -> dict[str, int]:
        return dict(_sizes(self._path / under, f"{under}/" if under else ""))


def _sizes(folder: str | Path, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the names and sizes of the files below a folder. What is deleted in the meantime is left out."""
    with suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(entry.path, f"{name}/")
                continue
            with suppress(FileNotFoundError):
                if entry.is_file():
                    yield name, entry.stat().st_size


def _create_folder(path: Path) -> None:
    with _allowed(path):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def _allowed(path: Path) -> Iterator[None]:
    """Raise ConnectorError for an error of the disk that trying again does not heal."""
    try:
        yield
    except (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        raise ConnectorError(f"{path} is refused: {error.strerror}. Check the path and its rights.") from error


class _DurableFile(io.BufferedWriter):
    """A new file whose bytes are on the disk when it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("wb", buffering=0), 1 << 20)

    def close(self) -> None:
        if not self.closed:
            self.flush()
            os.fsync(self.fileno())
        super().close()

    def discard(self) -> None:
        super().close()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _changed(place: object) -> FencedError:
    return FencedError(
        f"{place} was replaced by another writer of the same task, which continues in place of this one."
    )


class ObjectFolder:
    """The objects under a prefix of S3, Google Cloud Storage, Azure or a compatible store."""

    def __init__(self, location: str, options: StorageOptions) -> None:
        self._location = location
        parts = urlsplit(location)
        self._prefix = parts.path.strip("/") + "/" if parts.path.strip("/") else ""
        self._store = _object_store(f"{parts.scheme}://{parts.netloc}", options)

    def read_state(self, name: str) -> State | None:
        import obstore

        with self._answers(name), suppress(FileNotFoundError):
            result = obstore.get(self._store, self._prefix + name)
            return State(bytes(result.bytes()), _tag(result.meta))
        return None

    def replace_state(self, name: str, content: bytes, expected: State | None) -> State:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create" if expected is None else expected.tag
        with self._answers(name):
            try:
                written = obstore.put(self._store, self._prefix + name, content, mode=mode)
            except (AlreadyExistsError, PreconditionError) as error:
                raise _changed(f"{self._location}/{name}") from error
        return State(content, _tag(written))

    def create(self, name: str) -> NewFile:
        import obstore

        def put(file: BinaryIO) -> None:
            with self._answers(name):
                obstore.put(self._store, self._prefix + name, file)

        return _Upload(put)

    def open(self, name: str) -> BinaryIO:
        import obstore

        with self._answers(name):
            reader = obstore.open_reader(self._store, self._prefix + name, buffer_size=_READ_BYTES)
        return io.BufferedReader(_Download(reader, self, name), _READ_BYTES)

    def move(self, source: str, target: str) -> None:
        import obstore

        with self._answers(target), suppress(FileNotFoundError):
            obstore.copy(self._store, self._prefix + source, self._prefix + target)
            obstore.delete(self._store, self._prefix + source)

    def delete(self, names: Sequence[str]) -> None:
        import obstore

        for name in names:
            with self._answers(name), suppress(FileNotFoundError):
                obstore.delete(self._store, self._prefix + name)

    def sizes(self, under: str = "") -> dict[str, int]:
        import obstore

        prefix = self._prefix + under
        with self._answers(under):
            entries = [entry for chunk in obstore.list(self._store, prefix or None) for entry in chunk]
        return {entry["path"].removeprefix(self._prefix): entry["size"] for entry in entries}

    @contextmanager
    def _answers(self, name: str) -> Iterator[None]:
        """Convert errors of obstore, whose texts name the request but no credentials."""
        from obstore.exceptions import BaseError, InvalidPathError, PermissionDeniedError, UnauthenticatedError

        place = f"{self._location}/{name}"
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError, InvalidPathError) as error:
            raise ConnectorError(f"{place} is refused: {_reason(error)}. Check the options and the rights.") from error
        except (BaseError, FileNotFoundError) as error:
            if remedy(error):
                raise ConnectorError(f"{place} is refused: {_reason(error)}. {remedy(error)}.") from error
            if isinstance(error, FileNotFoundError):
                raise
            raise ConnectorUnavailableError(f"{place} does not answer: {_reason(error)}") from error


class _Download(io.RawIOBase):
    """An object that is read by ranges."""

    def __init__(self, reader: Any, folder: ObjectFolder, name: str) -> None:
        self._reader = reader
        self._folder = folder
        self._name = name

    def readinto(self, buffer: Any) -> int:
        with self._folder._answers(self._name):
            data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


_READ_BYTES = 1 << 20


def _tag(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return what a conditional put takes: of S3 the tag, of Google Cloud Storage the version too."""
    return {name: metadata[name] for name in ("e_tag", "version") if metadata.get(name) is not None}


class _Upload(io.BufferedRandom):
    """A new object. It is gathered in a temporary file, and put as a whole, in parts if it is large, when it is closed.

    So a failure leaves no upload half done, and the attempts of obstore begin anew.
    """

    def __init__(self, put: Callable[[BinaryIO], None]) -> None:
        descriptor, path = tempfile.mkstemp(prefix="kstreams-")
        os.unlink(path)
        super().__init__(io.FileIO(descriptor, "r+"), 1 << 20)
        self._put = put

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.seek(0)
            self._put(cast(BinaryIO, self))
        finally:
            super().close()

    def discard(self) -> None:
        super().close()


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _object_store(root: str, options: StorageOptions) -> ObjectStore:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise ConnectorError(f"Files at {root} need the package obstore: pip install 'kstreams-dsl[files]'") from error
    try:
        return from_url(root, **{"retry_config": _RETRIES, **options})
    except Exception as error:  # obstore raises classes of its own and ValueError
        raise ConnectorError(f"{root} cannot be opened: {_reason(error)}") from error


_RETRIES: dict[str, Any] = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
"""obstore tries for 3 minutes by default; the worker of the connector tries again for ever."""
