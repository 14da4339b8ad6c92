"""Sources and sinks are known by their names, those of kstreams and those of installed packages."""

from pathlib import Path

import pytest

import kstreams as ks
from kstreams.connect.installed import SINKS, SOURCES
from kstreams.errors import ConnectorError


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *entries: str) -> None:
    """Put a package with entry points for sources into a folder that Python looks into."""
    information = folder / "kstreams_queue-1.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: kstreams-queue\nVersion: 1.2\n")
    (information / "entry_points.txt").write_text("\n".join(["[kstreams.sources]", *entries]))
    (folder / "kstreams_queue.py").write_text(
        "import kstreams as ks\n"
        "def queue(value=dict, *, rows: int):\n"
        "    return ks.sources.generate(value, rows=rows)\n"
    )
    monkeypatch.syspath_prepend(folder)


def test_functions_of_kstreams_are_known_by_their_names() -> None:
    assert SOURCES.function("csv") is ks.sources.csv
    assert SINKS.function("sql") is ks.sinks.sql
    assert {"csv", "generate", "http", "json_lines", "postgres", "sql", "webhook"} <= set(SOURCES.names())
    assert {"delta", "files", "http", "iceberg", "postgres", "sql"} <= set(SINKS.names())
    assert "merge_files" not in SINKS.names()
    assert "Page" not in SOURCES.names()


def test_a_package_brings_a_source_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "queue = kstreams_queue:queue")
    assert "queue" in SOURCES.names()
    assert SOURCES.function("queue").__name__ == "queue"


def test_a_package_does_not_replace_a_source_of_kstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "csv = kstreams_queue:queue")
    assert SOURCES.function("csv") is ks.sources.csv


def test_an_unknown_name_is_an_error_with_the_nearest_and_all_names() -> None:
    with pytest.raises(ConnectorError, match=r"no source 'json_line'; did you mean 'json_lines'\? There are: arrow, "):
        SOURCES.function("json_line")


def test_a_package_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "queue = kstreams_queue:stack")
    with pytest.raises(ConnectorError, match=r"'queue' of kstreams-queue 1\.2 cannot be imported.*stack"):
        SOURCES.function("queue")
