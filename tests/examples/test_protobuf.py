"""Trades as Protobuf: what lies in the topics are messages that protobuf reads, and their totals are right."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from typing import Any

from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from tests.examples.conftest import EXAMPLES, Terminal
from tests.examples.patterns import sample
from tests.support.schema_serdes import generated_module, message_class

FRAME = 6


def values(terminal: Terminal, topic: str) -> dict[str, list[bytes]]:
    rows = terminal.rows(topic, "--key-type", "str", "--value-type", "hex")
    by_key: dict[str, list[bytes]] = defaultdict(list)
    for row in rows:
        by_key[row["key"]].append(bytes.fromhex(row["value"]))
    return by_key


def test_trades_and_totals_are_messages(terminal: Terminal) -> None:
    terminal.run("kstreams", "topics", "create", "trades")
    terminal.run("bash", "-c", f"kstreams produce trades --json < {EXAMPLES}/data/trades.jsonl")
    terminal.run("kstreams", "run", str(EXAMPLES / "protobuf" / "trades.py"), "--until-end")
    trades: dict[str, list[Any]] = defaultdict(list)
    for row in sample("trades"):
        trades[row["key"]].append(row)

    (terminal.folder / "trade.proto").write_text((EXAMPLES / "protobuf" / "trade.proto").read_text())
    trade_class = generated_module(terminal.folder, "trade").Trade
    written = {
        key: [trade_class.FromString(row[FRAME:]) for row in rows]
        for key, rows in values(terminal, "protobuf-trades").items()
    }
    assert {key: [trade.at.ToMilliseconds() for trade in rows] for key, rows in written.items()} == {
        key: [row["timestamp"] for row in rows] for key, rows in trades.items()
    }
    assert {trade.size for rows in written.values() for trade in rows} == {0, 1}

    settings = {"schema.registry.url": "local:", "log.dir": terminal.folder / ".kstreams" / "log"}
    with closing(registry_of(Config.of(settings))) as registry:
        assert {"protobuf-trades-value", "protobuf-totals-value"} < set(registry.subjects())
        total_class = message_class(registry.version("protobuf-totals-value").schema, "Total")
    totals = {
        key: total_class.FromString(rows[-1][FRAME:]) for key, rows in values(terminal, "protobuf-totals").items()
    }
    assert {key: (total.trades, total.volume) for key, total in totals.items()} == {
        key: (len(rows), sum(row["value"]["volume"] for row in rows)) for key, rows in trades.items()
    }
