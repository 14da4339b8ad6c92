"""One RocksDB per task, a column family per store: the only file that imports rocksdict.

Every family carries the changelog offset it stands for as a key of its own, written in the same batch as the last rows
of a commit. There is no write-ahead log: the changelog is it, so after a crash a family holds what some earlier commit
left, with the offset from which to replay. Data keys begin with 1, the one about the family with 0.

rocksdict's reads and writes hold the GIL (multi_get and flush do not), hence batches of limited size: half a million
entries at once stop every other thread for 75 ms.
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
from kstreams.os.forks import of_module, of_one_process
from kstreams.os.open_files import file_limit
from kstreams.state.column_family import ByteRows, Chunk, Statistic
from kstreams.state.live_budget import MIB, StateLimits
from kstreams.state.rows.byte_columns import prefixed
from kstreams.state.rows.byte_order import last_of_each

DATA = b"\x01"
AFTER_DATA = b"\x02"
ABOUT = b"\x00about"
# rows of the parts of a scan: few for who wants no more
_FIRST_SIZES = (64, 256, 1_024, 4_096)
_SIZE = 8_192
_MARK = struct.Struct(">qq")  # changelog offset (-1: unknown), highest time observed


def mark(offset: int | None, observed_ms: int) -> bytes:
    """What a family stands for, as the value of `ABOUT`."""
    return _MARK.pack(-1 if offset is None else offset, observed_ms)


def marked(data: bytes | None) -> tuple[int | None, int]:
    """The changelog offset and the highest time of a `mark`; None and -1 without one."""
    offset, observed_ms = (-1, -1) if data is None else _MARK.unpack(data)
    return None if offset < 0 else offset, observed_ms


Part = tuple[list[bytes], list[bytes]]
"""Keys, each behind `DATA`, and values of some rows: two lists, since tuples would cost as much as reading them."""


def read(rows: Any, low: bytes, high: bytes | None, size: int) -> Part:
    """Up to `size` rows of an iterator from `low` on, before `high`.

    What cannot be read looks like the end: the iterator's status tells. A call more in each turn, as what both
    directions have in common, would take a fifth more time.
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
    """`read` from before `high`, backwards, down to `low`."""
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
    """[low, high) in adjoining parts, the last first when reversed; `take` reads so many rows of one."""
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
    """The value of a key, as RocksDB has it, by an iterator. What cannot be read looks absent: its status tells."""
    rows.seek(key)
    if rows.key() == key:
        value: bytes = rows.value()
        return value
    rows.status()
    return None


def first(part: Part) -> bytes | None:
    """The key of its first row; None without one."""
    keys, _ = part
    return _key(keys[0]) if keys else None


def _key(stored_key: bytes) -> bytes:
    return stored_key[len(DATA) :]


def _end(high: bytes | None) -> bytes:
    return AFTER_DATA if high is None else DATA + high


_LOST = errno.ENOENT, errno.EIO, errno.ENOTDIR, errno.EISDIR  # what other errors name is well again when there is room


def unreadable(path: Path, error: Exception) -> StateError:
    """The error for a database that RocksDB cannot read or write: because of its files, or of the machine."""
    reason = str(error).rstrip(". ")
    if "Too many open files" in reason:
        return StateError(f"RocksDB at {path} cannot be opened: {reason}. Raise their number with `ulimit -n`.")
    if _is_damage(error, reason):
        return damaged(path, reason)
    return StateError(f"RocksDB at {path} cannot be read or written: {reason}. Mend that, then start again.")


def damaged(path: Path, reason: str) -> CorruptStateError:
    """The error for damaged files of a database."""
    return CorruptStateError(f"the state stores in {path} are damaged: {reason}", path)


def _is_damage(error: Exception, reason: str) -> bool:
    """Whether files are to blame; rocksdict raises plain exceptions that carry RocksDB's words."""
    if type(error) is not Exception:
        return False
    is_of_system = reason.startswith("IO error") or "(os error " in reason
    return not is_of_system or any(os.strerror(code) in reason for code in _LOST)


T = TypeVar("T")


_MANY = 1_000  # rows: fewer take less time than a rest


class RocksView:
    """A family that is only read (see `ReadFamily`).

    It is one iterator of RocksDB, which sees what was there when it was made; a snapshot of rocksdict does not cover
    its iterators. The iterator never leaves the view: one that is alive keeps the database from being closed.

    Parameters
    ----------
    rows : RdictIter
    path : Path
        Of the database.
    estimated_rows : int
    rest : callable
        Called after a part of a scan with the seconds of CPU time that it took, with all that its reader did.
    """

    frozen = True
    durable = True

    def __init__(self, rows: Any, path: Path, estimated_rows: int, pause: Callable[[float], None]) -> None:
        self._rows = rows
        self._path = path
        self._estimated_rows = estimated_rows
        self._rest = pause
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
                self._rest(thread_time() - started)
                started = thread_time()

    def first_from(self, low: bytes) -> bytes | None:
        return first(self._call(read, low, None, 1))

    def estimated_rows(self) -> int:
        return self._estimated_rows

    def release(self) -> None:
        """Let go of the iterator; waits for the part that is being read."""
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
    """The statistics in RocksDB's own text, by their names without the prefix.

    Examples
    --------
    >>> text = 'rocksdb.bytes.written COUNT : 70\\nrocksdb.db.flush.micros P50 : 1.0 P100 : 9.0 COUNT : 2 SUM : 12'
    >>> found = parsed(text)
    >>> found["bytes.written"], found["db.flush.micros"]
    (Statistic(times=70, total=0, highest=0.0), Statistic(times=2, total=12, highest=9.0))
    """
    return {
        name: Statistic(int(count), int(total or 0), float(highest or 0))
        for name, highest, count, total in _LINE.findall(text)
    }


P = ParamSpec("P")

BATCH_ROWS = 10_000
_FEWEST_FILES = 32  # of one database; the others of the process want some too
_BULK_ROWS = 20_000
_COPIES = 4  # of a row while a restore writes it: gathered, joined, in order, and in RocksDB's hands


class RocksDatabase:
    """The families of a task's stores.

    Parameters
    ----------
    directory : Path
        The task's; made when it is not there.
    stores : sequence of str
        Names of the stores.
    limits : StateLimits
        Sizes of the caches that all databases of the process share; those of the first one hold.
    measured : bool
        Whether RocksDB gathers statistics.

    Raises
    ------
    CorruptStateError
        When its files are damaged.
    StateError
        When another process holds the directory, or RocksDB cannot work there.
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
        if not is_known and any(path.glob("*.sst")):  # RocksDB would begin anew beside them
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
        """Flush every family, then let go of the files; a handle that lives on would keep RocksDB's own lock.

        Everything is let go also where files turn out to be damaged; the error comes afterwards.
        """
        with ExitStack() as closing:
            closing.callback(self._lock.release)
            closing.callback(self._restrict)
            closing.callback(self._let_go)
            for family in self._families.values():
                closing.callback(family.close)

    def _let_go(self) -> None:
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

    def __init__(self, db: Any, store: str, bulk_file: Path, most_gathered: int) -> None:
        self._path = bulk_file.parent / "rocksdb"
        self._bulk_file = bulk_file
        self._db = db
        self._rows = db.get_column_family(_family_name(store))
        self._handle = db.get_column_family_handle(_family_name(store))
        self._settling = threading.Lock()
        self._gathered: list[ByteRows] = []
        self._bytes_gathered = 0
        self._most_gathered = most_gathered
        self.offset: int | None = None
        self.observed_ms = -1

    def read_mark(self) -> None:
        """Learn what the bytes stand for."""
        self.offset, self.observed_ms = marked(self._guarded(self._rows.get, ABOUT))

    def get(self, key: bytes) -> bytes | None:
        self._settle()
        try:
            data: bytes | None = self._rows.get(DATA + key)
        except Exception as error:
            raise unreadable(self._path, error) from error
        return data

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        self._settle()
        rows: list[bytes | None] = self._guarded(self._rows.get, [DATA + key for key in keys])
        return rows

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        self._settle()
        read_part = read_back if reverse else read
        yield from in_chunks(lambda *part: self._guarded(read_part, self._rows.iter(), *part), low, high, reverse)

    def first_from(self, low: bytes) -> bytes | None:
        self._settle()
        return first(self._guarded(read, self._rows.iter(), low, None, 1))

    def view(self, pause: Callable[[float], None]) -> RocksView:
        """The bytes as they are now, whatever is written later; `pause` is called between parts of a scan."""
        self._settle()
        return self._guarded(RocksView, self._rows.iter(), self._path, self.estimated_rows(), pause)

    def write(self, rows: ByteRows, offset: int | None, observed_ms: int) -> None:
        self._settle()
        self._note(offset, observed_ms)
        self._write(rows)

    def restore(self, rows: ByteRows, offset: int, observed_ms: int) -> None:
        self._note(offset, observed_ms)
        self._gathered.append(rows)
        self._bytes_gathered += rows.keys.nbytes + rows.values.nbytes
        if self._bytes_gathered >= self._most_gathered:
            self._settle()

    def delete_range(self, low: bytes, high: bytes) -> None:
        self._settle()
        self._guarded(self._rows.delete_range, DATA + low, DATA + high, _without_log())

    def estimated_rows(self) -> int:
        self._settle()
        return int(self._rows.property_int_value("rocksdb.estimate-num-keys") or 0)

    def estimated_bytes(self) -> int:
        names = ("rocksdb.estimate-live-data-size", "rocksdb.cur-size-all-mem-tables")
        return sum(int(self._rows.property_int_value(name) or 0) for name in names)

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        return {name: int(self._rows.property_int_value(f"rocksdb.{name}") or 0) for name in names}

    def close(self) -> None:
        """Bring everything to disk and drop the handles."""
        try:
            self._settle()
            self._guarded(self._rows.flush)
        finally:
            self._rows = self._handle = self._db = None

    def _note(self, offset: int | None, observed_ms: int) -> None:
        self.offset = self.offset if offset is None else offset
        self.observed_ms = observed_ms

    def _write(self, rows: ByteRows) -> None:
        """Batches of limited size; what the rows stand for goes with the last: to replay the others does no harm."""
        if len(rows.keys) >= BATCH_ROWS:  # neighbours find their place in RocksDB's memory twice as fast
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

    def _settle(self) -> None:
        """Write what a restore has gathered: what every other call begins with."""
        if self._db is None:
            raise StateError(f"the stores at {self._path} are closed: their task has moved or stopped")
        if self._gathered:
            with self._settling:
                self._write_gathered()

    def _write_gathered(self) -> None:
        if not self._gathered:
            return  # another thread has
        gathered = ByteRows(
            pa.concat_arrays([rows.keys for rows in self._gathered]),
            pa.concat_arrays([rows.values for rows in self._gathered]),
        )
        try:
            self._write(gathered) if len(gathered.keys) < _BULK_ROWS else self._ingest(gathered)
        finally:
            # not before: who finds none reads at once
            self._gathered = []
            self._bytes_gathered = 0

    def _ingest(self, rows: ByteRows) -> None:
        """Write rows as one sorted file that RocksDB takes over as it is: several times faster than batches."""
        order = last_of_each(rows.keys)
        in_order = ByteRows(rows.keys.take(order), rows.values.take(order))
        self._guarded(self._rows.flush)  # older rows in memory would be lost in a crash, while the file's offset stays
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
    """The next rows as objects, with their keys as RocksDB has them."""
    keys, values = (column.slice(start, BATCH_ROWS) for column in rows)
    return zip(prefixed(DATA, keys).to_pylist(), values.to_pylist(), strict=True)


def _family_name(store: str) -> str:
    return f"store:{store}"  # RocksDB has a family named "default", which a store may be named too


def _without_log() -> Any:
    options = rocksdict.WriteOptions()
    options.disable_wal = True
    return options


class _Threads:
    """In which process RocksDB has threads: none of any other can flush, and whoever waits for it waits for ever."""

    process: int | None = None


def _leave_at_once() -> None:
    """Let a child that was forked beside RocksDB's threads end without its exit handler, which waits for them."""
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


_shared_lock = of_module(threading.Lock())
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
    options.set_paranoid_checks(True)  # damage ends writes too, and missing files are noticed at once
    options.set_atomic_flush(True)  # what one batch wrote to several families reaches the disk together
    options.set_write_buffer_manager(buffers)
    options.set_write_buffer_size(min(32 * MIB, limits.write_buffer_bytes // 2))
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    options.set_keep_log_file_num(2)
    options.set_max_file_opening_threads(1)  # by default 16 are started for every family, however few its files
    options.set_level_zero_file_num_compaction_trigger(12)
    options.set_max_open_files(max(_FEWEST_FILES, file_limit() // 16))
    table = rocksdict.BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)  # else they take memory beside the cache, as much as there are keys
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    return options
