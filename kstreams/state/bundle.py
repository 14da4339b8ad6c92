"""A bundle: the state of a stopped application as a folder, with the offsets up to which it had read its input.

Each engine can write a bundle, and continue from a bundle. `bundle.json` lists the contents; the rows of each store are
an Arrow file of changelog records. A bundle is untrusted: its digests are checked before anything is used, and it
contains no code.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.os.private import make_folder, private_file, private_folder, write_private
from kstreams.state.api import Changes
from kstreams.state.task_state import SCHEMA, encoded_changes

FORMAT = 1
_NAME = "bundle.json"
_ROWS = 65_536
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one slash, because `Path` merges two


class TaskRows(NamedTuple):
    """The state of one task: its metadata, and by store all rows as changelog records."""

    task: str
    metadata: Mapping[str, int]
    stores: Mapping[str, Changes]


class StoreFile(msgspec.Struct, frozen=True):
    """The number of rows of a store, and the digest of their file."""

    rows: int
    digest: str


class TaskInBundle(msgspec.Struct, frozen=True):
    """The contents of a bundle for one task."""

    metadata: dict[str, int]
    stores: dict[str, StoreFile]


class Origin(msgspec.Struct, frozen=True):
    """The application that wrote the state.

    Parameters
    ----------
    application : str
        The application id.
    engine : str
        The engine that wrote the state.
    topology : str
        The fingerprint of the topology.
    positions : dict of str to dict of int to int
        The next offsets of the user's topics that it reads, by topic and partition.
    ended : bool
        True if the end of the input was processed, so that windows are closed.
    """

    application: str
    engine: str
    topology: str
    positions: dict[str, dict[int, int]]
    ended: bool = False

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """The next offsets by partition."""
        return {
            TopicPartition(topic, partition): offset
            for topic, offsets in self.positions.items()
            for partition, offset in offsets.items()
        }


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[int, int]]:
    """Return offsets in the form of `Origin.positions`.

    Examples
    --------
    >>> by_topic({TopicPartition("in", 0): 7, TopicPartition("in", 1): 5})
    {'in': {0: 7, 1: 5}}
    """
    numbers: dict[str, dict[int, int]] = {}
    for source, offset in sorted(offsets.items()):
        numbers.setdefault(source.topic, {})[source.partition] = offset
    return numbers


class _Contents(msgspec.Struct, frozen=True):
    origin: Origin
    tasks: dict[str, TaskInBundle]


class _Sealed(msgspec.Struct, frozen=True):
    format: int
    digest: str
    contents: msgspec.Raw


class Bundle:
    """An existing bundle.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    StateError
        If there is no bundle, it is damaged, or another version of kstreams wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = _local(folder)
        path = folder / _NAME
        try:
            written = decode_json(path.read_bytes(), _Sealed)
            if written.format != FORMAT:
                raise StateError(f"{folder} was written by another version of kstreams: use that one.")
            if _digest(written.contents) != written.digest:
                raise StateError(f"{path} is damaged: its content does not fit its digest. Export the state again.")
            contents = decode_json(written.contents, _Contents)
        except FileNotFoundError:
            raise StateError(f"{folder} holds no state: write it with `kstreams state export --to {folder}`.") from None
        except (OSError, msgspec.DecodeError) as error:
            raise StateError(f"{path} cannot be read: {error}. Export the state again.") from error
        self.origin = contents.origin
        self.tasks = contents.tasks
        for name in (*self.tasks, *(store for task in self.tasks.values() for store in task.stores)):
            if Path(name).name != name:
                raise StateError(f"{path} names {name!r}, which is no task and no store.")

    def check(self) -> None:
        """Raise StateError if a file is missing or damaged."""
        for task, state_of_task in self.tasks.items():
            for store, file in state_of_task.stores.items():
                self._checked(task, store, file)

    def rows(self, task: str) -> TaskRows:
        """Return the state of a task; raise StateError if a file is missing or damaged."""
        state_of_task = self.tasks[task]
        return TaskRows(
            task,
            state_of_task.metadata,
            {name: self._rows(task, name, file) for name, file in state_of_task.stores.items()},
        )

    def _rows(self, task: str, store: str, entry: StoreFile) -> Changes:
        raw = self._checked(task, store, entry)
        path = _path(self.folder, task, store)
        try:
            with pa.ipc.open_stream(pa.py_buffer(raw)) as reader:
                table = reader.read_all()
            table.validate(full=True)
        except pa.ArrowException as error:
            raise StateError(f"{path} holds no rows of a store: {error}. Export the state again.") from error
        if table.schema != SCHEMA or table.num_rows != entry.rows:
            raise StateError(f"{path} holds other rows than its bundle says. Export the state again.")
        return Changes(*(column.combine_chunks() for column in table.columns))

    def _checked(self, task: str, store: str, entry: StoreFile) -> bytes:
        path = _path(self.folder, task, store)
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}. Export the state again.") from error
        if _digest(raw) != entry.digest:
            raise StateError(f"{path} is damaged: its content does not fit its digest. Export the state again.")
        return raw


def write_bundle(folder: Path, origin: Origin, tasks: Iterable[TaskRows]) -> Bundle:
    """Write a bundle into a new or empty folder. The folder appears when the bundle is complete.

    Raises
    ------
    StateError
        If the folder is not empty, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> rows = Changes(pa.array([b"a"]), pa.array([b"1"]), pa.array([5]))
    >>> origin = Origin("app", "native", "{}", {"in": {0: 7}})
    >>> bundle = write_bundle(Path(tempfile.mkdtemp()), origin, [TaskRows("0_0", {"stream_time": 5}, {"counts": rows})])
    >>> Bundle(bundle.folder).rows("0_0").stores["counts"].keys.to_pylist()
    [b'a']
    """
    require_free(folder)
    scratch = folder.absolute().with_name(f".{folder.absolute().name}.unfinished")
    try:
        make_folder(scratch.parent)
        shutil.rmtree(scratch, ignore_errors=True)
        private_folder(scratch)
        contents = msgspec.json.encode(_Contents(origin, {rows.task: _task(scratch, rows) for rows in tasks}))
        written = _Sealed(FORMAT, _digest(contents), msgspec.Raw(contents))
        write_private(scratch / _NAME, msgspec.json.encode(written))
        scratch.rename(folder)
    except OSError as error:
        raise StateError(f"{folder} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Bundle(folder)


def require_free(folder: Path) -> None:
    """Raise StateError if a bundle cannot be written to a folder, because it is not empty or not local."""
    if _local(folder).exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise StateError(f"{folder} is there already: delete it, or name another folder for the state.")


def in_parts(changes: Changes) -> Iterator[Changes]:
    """Yield changelog records in parts of limited size."""
    for start in range(0, len(changes), _ROWS):
        yield Changes(*(column.slice(start, _ROWS) for column in changes))


def _local(folder: Path) -> Path:
    if _URI.match(str(folder)):
        raise StateError(f"{folder} is no folder of this machine: name one, and copy it to where it is needed.")
    return folder


def _task(folder: Path, rows: TaskRows) -> TaskInBundle:
    stores = {store: _store(_path(folder, rows.task, store), changes) for store, changes in rows.stores.items()}
    return TaskInBundle(dict(rows.metadata), stores)


def _store(path: Path, changes: Changes) -> StoreFile:
    private_folder(path.parent)
    raw = encoded_changes(in_parts(changes))
    with open(private_file(path), "wb") as file:
        file.write(raw)
    return StoreFile(len(changes), _digest(raw))


def _path(folder: Path, task: str, store: str) -> Path:
    return folder / task / f"{store}.arrow"


def _digest(raw: bytes | pa.Buffer | msgspec.Raw) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()
