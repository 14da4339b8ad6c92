"""`kstreams check`: says beforehand whether a new version of an application can go on with the state of the old one."""

from __future__ import annotations

import pytest

APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
words = topology.stream("words", key=str, value=str){before}
words.group_by_key().count({store})
"""


@pytest.fixture
def versions(kstreams):
    """Writes versions of an application; what differs is the store and what stands before it."""

    def write(**stores: str) -> None:
        for name, store in stores.items():
            (kstreams.folder / f"{name}.py").write_text(APP.format(store=store, before=""))

    kstreams.write = write
    return kstreams


def test_what_keeps_all_state_is_status_0(versions):
    versions.write(old='"counts"', new='"counts"')
    outcome = versions.ok("check", "old.py", "new.py")
    assert outcome.out == ""
    assert "nothing that is kept has changed" in outcome.err
    assert "the state can be kept" in outcome.err


def test_a_renamed_store_is_status_1_and_named(versions):
    versions.write(old='"counts"', new='"totals"')
    outcome = versions("check", "old.py", "new.py")
    assert outcome.status == 1
    assert "refused\tstore 'counts' is renamed to 'totals'" in outcome.out
    assert "the state cannot be kept" in outcome.err


def test_changes_as_json(versions):
    versions.write(old='"counts"', new='ks.Materialized("counts", logging=False)')
    (row,) = versions.ok("check", "old.py", "new.py", "--json").json_lines()
    assert row == {"state": "goes on", "change": "store 'counts' is no longer restored from counts-changelog"}


def test_two_topologies_of_one_file_can_be_compared(versions):
    versions.write(app='"counts"')
    source = (versions.folder / "app.py").read_text()
    (versions.folder / "app.py").write_text(source + "\nlater = ks.StreamsBuilder()\n")
    outcome = versions.ok("check", "app.py", "app.py:later")
    assert "store 'counts' is removed" in outcome.out


def test_a_file_that_is_missing_is_named(versions):
    versions.write(old='"counts"')
    outcome = versions("check", "old.py", "gone.py")
    assert outcome.status == 1
    assert "gone.py" in outcome.err


def test_its_arguments_have_names(versions):
    assert "OLD" in versions("check").err
    assert "OLD" in versions.ok("check", "--help").out
    assert "NEW" in versions.ok("check", "--help").out
