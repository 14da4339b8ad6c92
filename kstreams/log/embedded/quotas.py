"""`ClientQuota`: the bytes that the clients of one client id send or read, against the quota of the id.

The log is one broker: the quota holds for all clients of the id, in all processes. They share a file with the time at
which the rate will have paid for all of their bytes. A client counts bytes after it has written or read them, and then
waits until that time. A client id that was idle may send or read at once what its rate allows in 10 seconds, as on
Kafka, whose brokers measure the rate over the last 10 to 11 seconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import google_crc32c

from kstreams.kernel.batch import Batch
from kstreams.log.api import Throttling
from kstreams.log.embedded.catalogue.catalogue import read_quota
from kstreams.log.embedded.disk import boot_id, create_file
from kstreams.log.embedded.resources import LogResources
from kstreams.log.embedded.segments.frame import byte_size
from kstreams.os.private import make_folder
from kstreams.os.stopped_holders import lock

WINDOW_MS = 10_000
"""The time whose bytes an idle client may send or read at once. Kafka: `quota.window.num` windows of a second."""

_logger = logging.getLogger("kstreams.log")
_REFRESH_MS = 1_000  # the time after which a quota is read again
_LONGEST_SLEEP_MS = 1_000  # a quota may be raised or removed while a client waits
_STATE = struct.Struct("<qq16s")  # the time when all bytes are paid (uptime in µs), the rate, the boot of the machine
_CRC = struct.Struct("<I")
_NEVER_US = -(2**62)


class _Account(NamedTuple):
    """The contents of the file that the clients of a client id share."""

    paid_us: int  # the uptime at which all bytes are paid
    rate: int  # by which they are paid

    def at_rate(self, rate: int, now_us: int) -> _Account:
        """Return the account after the quota has changed: the unpaid bytes stay the same."""
        if rate == self.rate or self.paid_us <= now_us:
            return _Account(self.paid_us, rate)
        return _Account(now_us + (self.paid_us - now_us) * self.rate // rate, rate)

    def charged(self, num_bytes: int, now_us: int) -> _Account:
        """Return the account after further bytes."""
        start_us = max(self.paid_us, now_us - WINDOW_MS * 1000)
        return self._replace(paid_us=start_us + num_bytes * 1_000_000 // self.rate)

    def delay_ms(self, now_us: int) -> int:
        """Return the time until all bytes are paid."""
        return max(0, -(-(self.paid_us - now_us) // 1000))


class ClientQuota:
    """The quota of one client.

    Parameters
    ----------
    home : LogResources
    client_id : str
        Empty for a client without `client.id`, which has the default quota.
    name : str
        `producer_byte_rate` or `consumer_byte_rate`.
    delays : bool
        Whether the client waits. If not, its bytes are counted only.

    Attributes
    ----------
    rate : int
        Bytes per second, as of the last look; 0 if there is no quota.
    """

    def __init__(self, home: LogResources, client_id: str, name: str, *, delays: bool) -> None:
        self._catalogue = home.catalogue
        self._clock = home.clock
        client_id = client_id.encode(errors="backslashreplace").decode()  # a client id may hold what UTF-8 cannot
        self._client_id = client_id
        self._name = name
        self._delays = delays
        digest = hashlib.sha256(client_id.encode()).hexdigest()[:32]
        self._path = home.folder / "quotas" / f"{digest}.{name}"
        self._file = -1
        self._mutex = threading.Lock()
        self._stopped = threading.Event()
        self._is_closed = False
        self._responses = 0
        self._total_ms = 0
        self._greatest_ms = 0
        self.rate = read_quota(self._catalogue, client_id, name)
        self._read_ms = self._clock.uptime_ms()

    def count_batches(self, batches: Iterable[Batch]) -> None:
        """Count the bytes of batches that were read."""
        if self.rate:
            self.count(sum(map(byte_size, batches)))

    def count(self, num_bytes: int) -> None:
        """Count bytes that were written or read."""
        if num_bytes <= 0 or not self._has_rate():
            return
        now_us = self._clock.uptime_ms() * 1000
        with self._locked_account() as account:
            present = account.read().at_rate(self.rate, now_us)
            charged = present.charged(num_bytes, now_us)
            account.write(charged)
        if delay_ms := charged.delay_ms(now_us):
            self._responses += 1
            self._total_ms += delay_ms - present.delay_ms(now_us)
            self._greatest_ms = max(self._greatest_ms, delay_ms)

    def delay_ms(self) -> int:
        """Return the time until the client may send or read again; 0 after `close`."""
        if not self._has_rate() or self._is_closed:
            return 0
        now_us = self._clock.uptime_ms() * 1000
        with self._locked_account() as account:
            return account.read().at_rate(self.rate, now_us).delay_ms(now_us)

    def is_delaying(self) -> bool:
        """Return whether the client has to wait now. Every poll calls this."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._read_ms >= _REFRESH_MS:
            self._refresh(now_ms)
        return self.rate > 0 and self._delays and self.delay_ms() > 0

    def wait(self, timeout_ms: int | None = None) -> bool:
        """Wait until the client may send again; return False after the timeout. `stop_waiting` ends the wait."""
        if not self._delays:
            return True
        end_ms = None if timeout_ms is None else self._clock.uptime_ms() + timeout_ms
        while (remaining_ms := self.delay_ms()) > 0 and not self._stopped.is_set():
            if end_ms is not None:
                remaining_ms = min(remaining_ms, end_ms - self._clock.uptime_ms())
            if remaining_ms <= 0:
                return False
            self._clock.sleep(min(remaining_ms, _LONGEST_SLEEP_MS) / 1000, self._stopped)
        return True

    def throttling(self) -> Throttling:
        """Return how the client was delayed."""
        return Throttling(self.delay_ms(), self._responses, self._total_ms, self._greatest_ms)

    def __str__(self) -> str:
        owner = f"the client id {self._client_id!r}" if self._client_id else "a client without a `client.id`"
        return f"the quota {self._name} of {self.rate} bytes per second for {owner}"

    def stop_waiting(self) -> None:
        """End the wait of another thread, and any later one."""
        self._stopped.set()

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._is_closed = True
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _has_rate(self) -> bool:
        now_ms = self._clock.uptime_ms()
        if now_ms - self._read_ms >= _REFRESH_MS:
            self._refresh(now_ms)
        return self.rate > 0

    def _refresh(self, now_ms: int) -> None:
        self._read_ms = now_ms
        self.rate = read_quota(self._catalogue, self._client_id, self._name)

    @contextmanager
    def _locked_account(self) -> Iterator[_AccountFile]:
        with self._mutex:
            if self._file < 0:
                make_folder(self._path.parent)
                self._file = create_file(self._path)
            lock(self._file, self._path)
            try:
                yield _AccountFile(self._file)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)


class _AccountFile:
    """A locked file with an account. One of an earlier boot, or that was torn when the machine went down, is empty."""

    def __init__(self, file: int) -> None:
        self._file = file

    def read(self) -> _Account:
        raw = os.pread(self._file, _STATE.size + _CRC.size, 0)
        content = raw[: _STATE.size]
        if len(raw) < _STATE.size + _CRC.size or _CRC.pack(google_crc32c.value(content)) != raw[_STATE.size :]:
            return _Account(_NEVER_US, 1)
        paid_us, rate, boot = _STATE.unpack(content)
        return _Account(paid_us, rate) if boot == boot_id() else _Account(_NEVER_US, 1)

    def write(self, account: _Account) -> None:
        content = _STATE.pack(min(account.paid_us, 2**62), account.rate, boot_id())
        try:
            os.pwrite(self._file, content + _CRC.pack(google_crc32c.value(content)), 0)
        except OSError as error:  # the records are written already: without room on the disk, they count for nobody
            _logger.warning("The bytes of a client could not be counted for its quota: %s", error)
