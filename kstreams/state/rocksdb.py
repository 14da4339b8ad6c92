"""`RocksDatabase`: one RocksDB per task, with a column family per store. Only this file imports rocksdict.

Each family has a row with its changelog offset, which is written in the same batch as the last rows of a commit. There
is no write-ahead log, because the changelog replaces it: after a crash, a family has the rows of an earlier commit, and
the offset from which to replay. Keys of data begin with the byte 1, and the key of the offset with the byte 0.

rocksdict's reads and writes hold the GIL (multi_get and flush do not). So batches have a limited size: half a million
entries at once stop all other threads for 75 ms.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from time import thread_time
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
import rocksdict

from kstreams.errors import CorruptStateError, StateError, StoreNotAvailableError
from kstreams.os.file_lock import lock_directory
from kstreams.os.forks import of_one_process, reset_in_child
from kstreams.os.open_files import file_limit
from kstreams.state.column_family import ByteRows, Chunk, Statistic
from kstreams.state.live_budget import MIB, StateLimits
from kstreams.state.rows.byte_columns import last_of_each, prefixed

DATA = b"\x01"
AFTER_DATA = b"\x02"
ABOUT = b"\x00about"
# rows of the parts of a scan: the first parts are small, since a reader may stop after a few rows
_FIRST_SIZES = (64, 256, 1_024, 4_096)
_SIZE = 8_192
_MARK = struct.Struct(">qq")  # changelog offset (-1: unknown), highest time observed


def mark(offset: int | None, observed_ms: int) -> bytes:
    """Encode the changelog offset and the highest time of a family, for the row `ABOUT`."""
    return _MARK.pack(-1 if offset is None else offset, observed_ms)


def marked(data: bytes | None) -> tuple[int | None, int]:
    """Decode the row `ABOUT`: the changelog offset and the highest time; None and -1 if there is no row."""
    offset, observed_ms = (-1, -1) if data is None else _MARK.unpack(data)
    return None if offset < 0 else offset, observed_ms


Part = tuple[list[bytes], list[bytes]]
"""Keys with their prefix `DATA`, and values: two lists, because tuples would double the time of reading."""


def read(rows: Any, low: bytes, high: bytes | None, size: int) -> Part:
    """Return up to `size` rows of an iterator in [low, high), ascending.

    An unreadable row looks like the end: then `status` raises the error. The loop repeats that of `read_back`, because
    one more call per row would take a fifth more time.
    """
    keys = list[bytes]()
    values = list[bytes]()
    end = _end(high)
    rows.seek(DATA + low)
    for _ in repeat(None, size):
        key = rows.key()
        if key is None or key >= end:
            break
        keys.append(key)
        values.append(rows.value())
        rows.next()
    rows.status()
    return keys, values


def read_back(rows: Any, low: bytes, high: bytes | None, size: int) -> Part:
    """Return up to `size` rows of an iterator in [low, high), descending."""
    keys = list[bytes]()
    values = list[bytes]()
    begin = DATA + low
    end = _end(high)
    rows.seek_for_prev(end)
    if rows.key() == end:
        rows.prev()
    for _ in repeat(None, size):
        key = rows.key()
        if key is None or key < begin:
            break
        keys.append(key)
        values.append(rows.value())
        rows.prev()
    rows.status()
    return keys, values


def in_chunks(
    take: Callable[[bytes, bytes | None, int], Part], low: bytes, high: bytes | None, reverse: bool
) -> Iterator[Chunk]:
    """Yield the rows of [low, high) in adjoining parts, the last part first if reversed.

    `take` reads up to a number of rows between two keys.
    """
    for size in chain(_FIRST_SIZES, repeat(_SIZE)):
        keys, values = take(low, high, size)
        is_whole = len(keys) < size
        if reverse:
            edge = low if is_whole else _key(keys[-1])
            yield Chunk(edge, high, keys, values, len(DATA))
            high = edge
        else:
            after = high if is_whole else _key(keys[-1]) + b"\x00"
            yield Chunk(low, after, keys, values, len(DATA))
            low = after or low
        if is_whole:
            return


def read_one(rows: Any, key: bytes) -> bytes | None:
    """Return the value of a key with its prefix, read by an iterator; None if there is none.

    An unreadable row looks absent: then `status` raises the error.
    """
    rows.seek(key)
    if rows.key() == key:
        value: bytes = rows.value()
        return value
    rows.status()
    return None


def first(part: Part) -> bytes | None:
    """Return the key of the first row; None if there is no row."""
    keys, _ = part
    return _key(keys[0]) if keys else None


def _key(stored_key: bytes) -> bytes:
    return stored_key[len(DATA) :]


def _end(high: bytes | None) -> bytes:
    return AFTER_DATA if high is None else DATA + high


_LOST = errno.ENOENT, errno.EIO, errno.ENOTDIR, errno.EISDIR  # files are intact after other errors, such as a full disk


def unreadable(path: Path, error: Exception) -> StateError:
    """Return the error for a database that RocksDB cannot read or write: damaged files, or a fault of the machine."""
    reason = str(error).rstrip(". ")
    if "Too many open files" in reason:
        return StateError(f"RocksDB at {path} cannot be opened: {reason}. Raise their number with `ulimit -n`.")
    if _is_damage(error, reason):
        return damaged(path, reason)
    return StateError(f"RocksDB at {path} cannot be read or written: {reason}. Mend that, then start again.")


def damaged(path: Path, reason: str) -> CorruptStateError:
    """Return the error for damaged files of a database."""
    return CorruptStateError(f"the state stores in {path} are damaged: {reason}", path)


def _is_damage(error: Exception, reason: str) -> bool:
    """Return whether files are damaged. rocksdict raises plain exceptions with RocksDB's message."""
    if type(error) is not Exception:
        return False
    is_of_system = reason.startswith("IO error") or "(os error " in reason
    return not is_of_system or any(os.strerror(code) in reason for code in _LOST)


T = TypeVar("T")


_MANY = 1_000  # rows of a part; reading fewer takes less time than a pause


class RocksView:
    """A family that is only read (see `ReadFamily`), as it was when the view was created.

    The view is one iterator of RocksDB, because a snapshot of rocksdict does not apply to iterators. The iterator never
    leaves the view, because RocksDB cannot close the database while an iterator exists.

    Parameters
    ----------
    rows : RdictIter
    path : Path
        The folder of the database.
    estimated_rows : int
    pause : callable
        Called after a part of a scan with the seconds of CPU time that the part and its reader took.
    """

    frozen = True
    durable = True

    def __init__(self, rows: Any, path: Path, estimated_rows: int, pause: Callable[[float], None]) -> None:
        self._rows = rows
        self._path = path
        self._estimated_rows = estimated_rows
        self._pause = pause
        self._lock = threading.Lock()
        self.offset, self.observed_ms = marked(read_one(rows, ABOUT))

    def get(self, key: bytes) -> bytes | None:
        return self._call(read_one, DATA + key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        take = partial(self._call, read_back if reverse else read)
        started = thread_time()
        for chunk in in_chunks(take, low, high, reverse):
            yield chunk
            if len(chunk.values) >= _MANY:
                self._pause(thread_time() - started)
                started = thread_time()

    def first_from(self, low: bytes) -> bytes | None:
        return first(self._call(read, low, None, 1))

    def estimated_rows(self) -> int:
        return self._estimated_rows

    def release(self) -> None:
        """Delete the iterator, after a read that is running."""
        with self._lock:
            self._rows = None

    def _call(self, call: Callable[..., T], *args: object) -> T:
        with self._lock:
            if self._rows is None:
                raise StoreNotAvailableError(
                    f"the stores at {self._path} were closed: their task has moved or stopped; ask again"
                )
            try:
                return call(self._rows, *args)
            except Exception as error:  # rocksdict raises nothing more special
                raise unreadable(self._path, error) from error


_LINE = re.compile(r"rocksdb\.(\S+) (?:.*P100 : (\S+) )?COUNT : (\d+)(?: SUM : (\d+))?")


def parsed(text: str) -> dict[str, Statistic]:
    """Parse the text of RocksDB's statistics: values by name, without the prefix `rocksdb.`.

    Examples
    --------
    >>> text = 'rocksdb.bytes.written COUNT : 70\\nrocksdb.db.flush.micros P50 : 1.0 P100 : 9.0 COUNT : 2 SUM : 12'
    >>> statistics = parsed(text)
    >>> statistics["bytes.written"], statistics["db.flush.micros"]
    (Statistic(times=70, total=0, highest=0.0), Statistic(times=2, total=12, highest=9.0))
    """
    return {
        name: Statistic(int(count), int(total or 0), float(highest or 0))
        for name, highest, count, total in _LINE.findall(text)
    }


P = ParamSpec("P")

BATCH_ROWS = 10_000
_FEWEST_FILES = 32  # open files of one database; the process may have several databases
_BULK_ROWS = 20_000
_COPIES = 4  # copies of a row while a restore writes it: buffered, concatenated, sorted, and in RocksDB


class RocksDatabase:
    """The column families of a task's stores.

    Parameters
    ----------
    directory : Path
        The folder of the task; created if it does not exist.
    stores : sequence of str
        The names of the stores.
    limits : StateLimits
        The sizes of the caches that all databases of the process share; those of the first database count.
    measured : bool
        True if RocksDB collects statistics.

    Raises
    ------
    CorruptStateError
        If the files are damaged.
    StateError
        If another process has locked the folder, or RocksDB cannot use it.
    """

    def __init__(self, directory: Path, stores: Sequence[str], limits: StateLimits, *, measured: bool = False) -> None:
        self._directory = directory
        self._measured = measured
        self._lock = lock_directory(directory)
        self._options = _options(limits)
        if measured:
            self._options.enable_statistics()
        of_one_process(self, "This state store", StateError)
        try:
            self._db = self._open(stores)
        except BaseException:
            self._lock.release()
            raise
        self._families = {
            store: RocksColumnFamily(
                self._db, store, directory / f"restore-{number}.sst", limits.restore_bytes // _COPIES
            )
            for number, store in enumerate(stores)
        }
        try:
            for family in self._families.values():
                family.read_mark()
        except BaseException:
            with suppress(StateError):
                self.close()
            raise

    def _open(self, stores: Sequence[str]) -> Any:
        _require_threads()
        path = self._directory / "rocksdb"
        options = self._options
        is_known = (path / "CURRENT").exists()
        if not is_known and any(path.glob("*.sst")):  # RocksDB would create an empty database beside them
            raise damaged(path, "the file CURRENT is missing")
        try:
            existing_families = rocksdict.Rdict.list_cf(str(path), options) if is_known else []
            families = {_family_name(store): options for store in stores}
            families |= {name: options for name in existing_families if name != "default"}
            path.mkdir(mode=0o700, exist_ok=True)
            _Threads.process = os.getpid()
            return rocksdict.Rdict(str(path), options, column_families=families)
        except Exception as error:  # rocksdict raises nothing more special
            raise unreadable(path, error) from error

    def family(self, store: str) -> RocksColumnFamily:
        return self._families[store]

    def statistics(self) -> dict[str, Statistic]:
        return parsed(self._options.get_statistics()) if self._measured else {}

    def close(self) -> None:
        """Flush all families, and close the database. A remaining handle would hold RocksDB's own lock.

        The database is closed even if a flush fails; the error is raised afterwards.
        """
        with ExitStack() as closing:
            closing.callback(self._lock.release)
            closing.callback(self._restrict)
            closing.callback(self._close_database)
            for family in self._families.values():
                closing.callback(family.close)

    def _close_database(self) -> None:
        self._families.clear()
        try:
            self._db.close()
        except Exception as error:
            raise unreadable(self._directory / "rocksdb", error) from error
        finally:
            del self._db

    def _restrict(self) -> None:
        for file in (self._directory / "rocksdb").iterdir():
            file.chmod(0o600)


class RocksColumnFamily:
    """The bytes of one store (see `ColumnFamily`)."""

    frozen = False
    durable = True

    def __init__(self, db: Any, store: str, bulk_file: Path, max_buffered_bytes: int) -> None:
        self._path = bulk_file.parent / "rocksdb"
        self._bulk_file = bulk_file
        self._db = db
        self._rows = db.get_column_family(_family_name(store))
        self._handle = db.get_column_family_handle(_family_name(store))
        self._writing = threading.Lock()
        self._buffered: list[ByteRows] = []
        self._buffered_bytes = 0
        self._max_buffered_bytes = max_buffered_bytes
        self.offset: int | None = None
        self.observed_ms = -1

    def read_mark(self) -> None:
        """Read the changelog offset and the highest time."""
        self.offset, self.observed_ms = marked(self._guarded(self._rows.get, ABOUT))

    def get(self, key: bytes) -> bytes | None:
        self._write_restored()
        try:
            data: bytes | None = self._rows.get(DATA + key)
        except Exception as error:
            raise unreadable(self._path, error) from error
        return data

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        self._write_restored()
        rows: list[bytes | None] = self._guarded(self._rows.get, [DATA + key for key in keys])
        return rows

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        self._write_restored()
        read_part = read_back if reverse else read
        yield from in_chunks(lambda *part: self._guarded(read_part, self._rows.iter(), *part), low, high, reverse)

    def first_from(self, low: bytes) -> bytes | None:
        self._write_restored()
        return first(self._guarded(read, self._rows.iter(), low, None, 1))

    def view(self, pause: Callable[[float], None]) -> RocksView:
        """Return a view of the present rows. `pause` is called between parts of a scan."""
        self._write_restored()
        return self._guarded(RocksView, self._rows.iter(), self._path, self.estimated_rows(), pause)

    def write(self, rows: ByteRows, offset: int | None, observed_ms: int) -> None:
        self._write_restored()
        self._note(offset, observed_ms)
        self._write(rows)

    def restore(self, rows: ByteRows, offset: int, observed_ms: int) -> None:
        self._note(offset, observed_ms)
        self._buffered.append(rows)
        self._buffered_bytes += rows.keys.nbytes + rows.values.nbytes
        if self._buffered_bytes >= self._max_buffered_bytes:
            self._write_restored()

    def delete_range(self, low: bytes, high: bytes) -> None:
        self._write_restored()
        self._guarded(self._rows.delete_range, DATA + low, DATA + high, _without_log())

    def estimated_rows(self) -> int:
        self._write_restored()
        return int(self._rows.property_int_value("rocksdb.estimate-num-keys") or 0)

    def estimated_bytes(self) -> int:
        names = ("rocksdb.estimate-live-data-size", "rocksdb.cur-size-all-mem-tables")
        return sum(int(self._rows.property_int_value(name) or 0) for name in names)

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        return {name: int(self._rows.property_int_value(f"rocksdb.{name}") or 0) for name in names}

    def close(self) -> None:
        """Flush, and delete the handles."""
        try:
            self._write_restored()
            self._guarded(self._rows.flush)
        finally:
            self._rows = self._handle = self._db = None

    def _note(self, offset: int | None, observed_ms: int) -> None:
        self.offset = self.offset if offset is None else offset
        self.observed_ms = observed_ms

    def _write(self, rows: ByteRows) -> None:
        """Write in batches of at most `BATCH_ROWS`.

        The changelog offset is written with the last batch, so a crash in between replays idempotent writes.
        """
        if len(rows.keys) >= BATCH_ROWS:  # sorted rows take half the time in RocksDB's memtable
            order = last_of_each(rows.keys)
            rows = ByteRows(rows.keys.take(order), rows.values.take(order))
        for start in range(0, max(1, len(rows.keys)), BATCH_ROWS):
            batch = rocksdict.WriteBatch(raw_mode=True)
            stop = start + BATCH_ROWS
            batch.set_default_column_family(self._handle)
            for key, value in _pairs(rows, start):
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
            if stop >= len(rows.keys):
                batch.put(ABOUT, mark(self.offset, self.observed_ms))
            self._guarded(self._db.write, batch, _without_log())

    def _write_restored(self) -> None:
        """Write the buffered rows of a restore, before any other access."""
        if self._db is None:
            raise StateError(f"the stores at {self._path} are closed: their task has moved or stopped")
        if self._buffered:
            with self._writing:
                self._write_buffered()

    def _write_buffered(self) -> None:
        if not self._buffered:
            return  # another thread has written them
        buffered = ByteRows(
            pa.concat_arrays([rows.keys for rows in self._buffered]),
            pa.concat_arrays([rows.values for rows in self._buffered]),
        )
        try:
            self._write(buffered) if len(buffered.keys) < _BULK_ROWS else self._ingest(buffered)
        finally:
            # after the write: a thread that sees no buffered rows reads at once
            self._buffered = []
            self._buffered_bytes = 0

    def _ingest(self, rows: ByteRows) -> None:
        """Write rows as one sorted file, which RocksDB ingests: this is several times faster than batches."""
        order = last_of_each(rows.keys)
        in_order = ByteRows(rows.keys.take(order), rows.values.take(order))
        self._guarded(self._rows.flush)  # a crash would lose older rows in memory, and not the file's offset
        self._guarded(self._fill, in_order)
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        self._guarded(self._rows.ingest_external_file, [str(self._bulk_file)], options)
        self._bulk_file.unlink(missing_ok=True)

    def _fill(self, rows: ByteRows) -> None:
        self._bulk_file.unlink(missing_ok=True)
        writer = rocksdict.SstFileWriter(rocksdict.Options(raw_mode=True))
        writer.open(str(self._bulk_file))
        writer[ABOUT] = mark(self.offset, self.observed_ms)
        for start in range(0, len(rows.keys), BATCH_ROWS):
            for key, value in _pairs(rows, start):
                if value is None:
                    del writer[key]
                else:
                    writer[key] = value
        writer.finish()

    def _guarded(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except Exception as error:  # rocksdict raises nothing more special
            raise unreadable(self._path, error) from error


def _pairs(rows: ByteRows, start: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Return the rows from `start` on, at most `BATCH_ROWS`, with the prefix of the keys."""
    keys, values = (column.slice(start, BATCH_ROWS) for column in rows)
    return zip(prefixed(DATA, keys).to_pylist(), values.to_pylist(), strict=True)


def _family_name(store: str) -> str:
    return f"store:{store}"  # a store may be named "default", as RocksDB's own family


def _without_log() -> Any:
    options = rocksdict.WriteOptions()
    options.disable_wal = True
    return options


class _Threads:
    """The process that has RocksDB's threads. A flush in a forked process would wait for ever."""

    process: int | None = None


def _leave_at_once() -> None:
    """Let a child process end without RocksDB's exit handler, which waits for threads that only the parent has."""
    with suppress(AttributeError):  # a C library without on_exit
        libc = ctypes.CDLL(None)
        if _Threads.process is not None:
            libc.on_exit(libc._exit, None)


os.register_at_fork(after_in_child=_leave_at_once)


def _require_threads() -> None:
    if _Threads.process not in (None, os.getpid()):
        raise StateError(
            f"state stores were open in process {_Threads.process} when this one was forked from it, and RocksDB's "
            'threads stayed behind: start processes with multiprocessing.get_context("spawn"), or before any store is '
            "opened"
        )


_shared_lock = reset_in_child(threading.Lock())
_shared: list[object] = []  # the process's block cache and write buffer manager, once a database was opened


def _caches(limits: StateLimits) -> list[object]:
    with _shared_lock:
        if not _shared:
            _shared.append(rocksdict.Cache(limits.block_cache_bytes))
            _shared.append(rocksdict.WriteBufferManager(limits.write_buffer_bytes, False))
    return _shared


def _options(limits: StateLimits) -> Any:
    cache, buffers = _caches(limits)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_paranoid_checks(True)  # writes fail after damage too, and missing files are noticed at once
    options.set_atomic_flush(True)  # a batch in several families reaches the disk as one
    options.set_write_buffer_manager(buffers)
    options.set_write_buffer_size(min(32 * MIB, limits.write_buffer_bytes // 2))
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    options.set_keep_log_file_num(2)
    options.set_max_file_opening_threads(1)  # the default starts 16 threads per family, however few files it has
    options.set_level_zero_file_num_compaction_trigger(12)
    options.set_max_open_files(max(_FEWEST_FILES, file_limit() // 16))
    table = rocksdict.BlockBasedOptions()
    table.set_block_cache(cache)
    # Otherwise index and filter blocks take memory outside of the cache, in proportion to the number of keys.
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    return options
