"""A table that writers change all the time, an audit of every change, and the judge of a topic with its changes."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import md5
from itertools import count
from time import sleep

import psycopg

from tests.support.postgres import Postgres

Version = tuple[int, str] | None
"""The number and the digest of the row that a change has left, or None for a deletion."""

TABLE = """
CREATE TABLE items (id int PRIMARY KEY, version bigint NOT NULL, body text);
ALTER TABLE items ALTER body SET STORAGE EXTERNAL;
CREATE TABLE audit (number bigserial PRIMARY KEY, id int, version bigint, body text);
CREATE FUNCTION audit_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND OLD.id <> NEW.id) THEN INSERT INTO audit (id) VALUES (OLD.id); END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO audit (id, version, body) VALUES (NEW.id, NEW.version, md5(coalesce(NEW.body, '')));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION audit_items();
CREATE SEQUENCE versions;
"""
LONG = "repeat(md5(random()::text), 100)"
SOME = "SELECT id FROM items WHERE id BETWEEN %s AND %s ORDER BY id FOR UPDATE"
STATEMENTS = (
    "INSERT INTO items SELECT g, nextval('versions'), CASE WHEN g %% 10 = 0 THEN {long} END"
    " FROM generate_series(%s::int, %s::int) g ON CONFLICT DO NOTHING",
    "UPDATE items SET version = nextval('versions') WHERE id IN (" + SOME + ")",
    "UPDATE items SET version = nextval('versions'), body = {long} WHERE id IN (" + SOME + ") AND id %% 10 = 0",
    "UPDATE items SET id = id + 1000000 * (1 + (random() * 1000)::int), version = nextval('versions') WHERE id IN ("
    + SOME
    + ") AND id %% 7 = 0",
    "DELETE FROM items WHERE id IN (" + SOME + ") AND id %% 3 = 0",
)
KEYS = 30_000
NO_BODY = md5(b"").hexdigest()


class Writers:
    """Threads that change rows until `join`, and until there are so many changes, whatever happens to the server."""

    def __init__(self, server: Postgres, changes: int, seed: int, threads: int = 2) -> None:
        self._server = server
        self._changes = changes
        self.errors: list[BaseException] = []
        self._may_end = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=[seed + number]) for number in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        self._may_end.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors, self.errors

    def _run(self, seed: int) -> None:
        chosen = random.Random(seed)
        try:
            while not self._is_done(chosen):
                sleep(0.2)
        except BaseException as error:
            self.errors.append(error)

    def _is_done(self, chosen: random.Random) -> bool:
        """Write until all is written; False if the server was lost."""
        try:
            with psycopg.connect(self._server.url, autocommit=True) as connection:
                for turn in count():
                    if turn % 10 == 0 and self._may_end.is_set() and changes_in(connection) >= self._changes:
                        return True
                    sleep(chosen.uniform(0, 0.1))
                    self._transaction(connection, chosen)
        except psycopg.OperationalError:
            pass
        return False

    def _transaction(self, connection: psycopg.Connection, chosen: random.Random) -> None:
        try:
            with connection.transaction(force_rollback=chosen.random() < 0.1):
                for _ in range(chosen.randint(1, 4)):
                    first = chosen.randrange(KEYS)
                    last = first + int(chosen.paretovariate(0.6)) % 1_000
                    statement = chosen.choice(STATEMENTS).format(long=LONG)
                    connection.execute(statement, [first, last])  # type: ignore[arg-type]
        except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
            pass


def create(server: Postgres, rows: int, identity: str) -> None:
    """Create the table, with some rows."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute(f"ALTER TABLE items REPLICA IDENTITY {identity}")  # type: ignore[arg-type]
        connection.execute(STATEMENTS[0].format(long=LONG), [1, rows])  # type: ignore[arg-type]


def changes_in(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT max(number) FROM audit").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def table_in(server: Postgres) -> dict[int, Version]:
    """Return the rows of the table."""
    with connected(server) as connection:
        query = "SELECT id, version, md5(coalesce(body, '')) FROM items"
        return {key: (version, body) for key, version, body in connection.execute(query)}


def history_in(server: Postgres) -> dict[int, list[Version]]:
    """Return all versions of each key, in their order."""
    history: dict[int, list[Version]] = defaultdict(list)
    with connected(server) as connection:
        for key, version, body in connection.execute("SELECT id, version, body FROM audit ORDER BY number"):
            history[key].append(None if version is None else (version, body))
    return history


@contextmanager
def connected(server: Postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


def last_versions(records: Sequence[tuple[int, Version]]) -> dict[int, Version]:
    """Return the table that the records of a topic describe."""
    table = dict(records)
    return {key: version for key, version in table.items() if version is not None}


def check_history(records: Sequence[tuple[int, Version]], history: dict[int, list[Version]], *, full: bool) -> None:
    """Check that the records of each key are its last versions: none is absent, none comes twice, none is out of order.

    The versions before the snapshot are absent. Without full identity, the long value of a version may be that of a
    later one, and the version is absent if its row was gone when the value was looked up.
    """
    by_key: dict[int, list[Version]] = defaultdict(list)
    for key, version in records:
        by_key[key].append(version)
    for key, versions in by_key.items():
        if full:
            assert versions == history[key][-len(versions) :], f"key {key}: {versions}, not {history[key]}"
        else:
            check_numbers(key, versions, history[key])


def check_numbers(key: int, versions: Sequence[Version], history: Sequence[Version]) -> None:
    numbers = [version and version[0] for version in versions]
    expected = list(reversed(history))
    for number in reversed(numbers):
        while expected and (expected[0] and expected[0][0]) != number:
            absent = expected.pop(0)
            assert absent is not None, f"key {key} lacks a deletion: {numbers}, not {history}"
            assert absent[1] != NO_BODY, f"key {key}: {numbers}, not {history}"
        assert expected, f"key {key}: {numbers}, not {history}"
        expected.pop(0)
