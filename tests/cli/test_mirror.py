"""`kstreams mirror`: what it prints, and what it refuses."""

from __future__ import annotations

import urllib.request

from tests.support.kafka_cluster import free_ports


def test_a_copy_ends_with_what_it_has_copied(kstreams) -> None:
    kstreams.ok("topics", "create", "lines", "--log-dir", "east")
    kstreams.ok("produce", "lines", "--log-dir", "east", stdin="one\ntwo\n")
    outcome = kstreams.ok("mirror", "--from", "east", "--to", "west", "--source-alias", "east", "--until-end")
    assert "east to target: topics of" in outcome.err
    assert "done: 2 records in, 2 out" in outcome.err
    read = kstreams.ok("consume", "east.lines", "--from-beginning", "--until-end", "--log-dir", "west")
    assert [line.split("\t")[-1] for line in read.out.splitlines()] == ["one", "two"]


def test_a_source_that_does_not_exist_is_an_error_and_is_not_created(kstreams) -> None:
    outcome = kstreams("mirror", "--from", "log:nowhere", "--to", "west", "--until-end")
    assert outcome.status == 1
    assert "there is no log in nowhere" in outcome.err
    assert not (kstreams.folder / "nowhere").exists()


def test_copies_by_the_same_name_need_aliases(kstreams) -> None:
    kstreams.ok("topics", "create", "lines", "--log-dir", "east")
    outcome = kstreams("mirror", "--from", "east", "--to", "west", "--identity", "--until-end")
    assert outcome.status == 2
    assert "--source-alias" in outcome.err


def test_a_home_and_itself_are_refused(kstreams) -> None:
    kstreams.ok("topics", "create", "lines", "--log-dir", "east")
    outcome = kstreams("mirror", "--from", "east", "--to", "log:east", "--until-end")
    assert outcome.status == 1
    assert "give two homes" in outcome.err


def test_a_file_of_settings_that_does_not_exist_is_refused(kstreams) -> None:
    kstreams.ok("topics", "create", "lines", "--log-dir", "east")
    outcome = kstreams("mirror", "--from", "east", "--to", "west", "--from-config", "east.toml")
    assert outcome.status == 2
    assert "east.toml" in outcome.err


def test_metrics_are_served_for_prometheus(kstreams) -> None:
    kstreams.ok("topics", "create", "lines", "--log-dir", "east")
    kstreams.ok("produce", "lines", "--log-dir", "east", stdin="one\ntwo\n")
    [port] = free_ports(1)
    outcome = kstreams.ok("mirror", "--from", "east", "--to", "west", "--until-end", "--metrics", str(port))
    assert f"metrics at http://127.0.0.1:{port}/metrics" in outcome.err
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    labels = '{partition="0",source="source",target="target",topic="source.lines"}'
    assert f"kafka_streams_mirror_source_metrics_record_count_total{labels} 2.0" in text
    assert f"kafka_streams_mirror_source_metrics_records_lag{labels} 0.0" in text
