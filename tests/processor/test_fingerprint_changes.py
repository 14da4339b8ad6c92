"""What a changed topology does to the state it finds: each kind of change, and whether it may go on."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.processor.topology.fingerprint import (
    changes,
    decode_fingerprint,
    encode_fingerprint,
    fingerprint_of,
    moves,
    refusal,
)

TEXTS = {"key": str, "value": str}
MINUTE = 60_000


def counted(store="counts", topic="in", before=None, windows=None, builder=None, **options):
    """The shape of a topology that counts the records of a topic."""
    builder = builder or ks.StreamsBuilder()
    words = builder.stream(topic, **TEXTS)
    grouped = (words if before is None else before(words)).group_by_key()
    table = (grouped if windows is None else grouped.windowed_by(windows)).count(ks.Materialized(store, **options))
    table.to_stream().to("out")
    return fingerprint_of(builder.build())


def reduced(kind):
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=kind).group_by_key().reduce(max, materialized="store")
    return fingerprint_of(builder.build())


def told(old, new):
    return [str(change) for change in changes(old, new)]


def test_the_same_topology_changes_nothing():
    assert told(counted(), counted()) == []


def test_steps_without_state_may_come_and_go():
    assert told(counted(), counted(before=lambda words: words.filter(lambda k, v: True))) == []


def test_an_added_store_begins_empty_and_a_removed_one_stays_unused():
    builder = ks.StreamsBuilder()
    builder.stream("other", **TEXTS).group_by_key().reduce(max, materialized="highest")
    both = counted(builder=builder)
    (added,) = [text for text in told(counted(), both) if "added" in text]
    assert added.startswith("goes on: store 'highest' is added: it begins empty")
    assert "goes on: store 'highest' is removed: what it holds stays unused" in told(both, counted())
    assert refusal(changes(counted(), both), "here") is None


def test_a_renamed_store_is_refused_and_says_how_to_keep_it():
    (text,) = told(counted("counts"), counted("totals"))
    assert text.startswith("refused: store 'counts' is renamed to 'totals', which would begin empty")
    assert text.endswith('materialized="counts"')


def test_an_inserted_operator_renames_what_has_no_name():
    old = counted(None)
    new = counted(None, before=lambda words: words.filter(lambda k, v: True))
    assert "STORE-0000000002' is renamed to 'KSTREAM-AGGREGATE-STATE-STORE-0000000003'" in told(old, new)[0]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (reduced(str), reduced(int), "another type of value: StringSerde() -> IntSerde()"),
        (counted(), counted(windows=ks.TimeWindows(size=MINUTE)), "another kind of entries: timestamped-key-value ->"),
        (
            counted(windows=ks.TimeWindows(size=MINUTE)),
            counted(windows=ks.TimeWindows(size=2 * MINUTE)),
            "another size of windows: 60000 -> 120000",
        ),
    ],
)
def test_a_retyped_store_is_refused(old, new, what):
    assert any(text.startswith("refused") and what in text for text in told(old, new))


def test_a_longer_retention_goes_on():
    windows = ks.TimeWindows(size=MINUTE)
    (text,) = told(counted(windows=windows), counted(windows=windows, retention=5 * MINUTE))
    assert text == "goes on: store 'counts' keeps for 300000 ms, before 60000 ms"


def test_a_store_filled_from_another_topic_is_refused():
    assert told(counted(), counted(topic="elsewhere")) == [
        "refused: store 'counts' is filled from other topics: in -> elsewhere"
    ]


def test_a_repartition_that_is_no_longer_read_is_refused():
    def again(words):
        return words.repartition(name="again")

    refused = [text for text in told(counted(before=again), counted()) if text.startswith("refused")]
    assert refused == [
        "refused: store 'counts' no longer reads the internal topic again-repartition: what waits there would be lost"
    ]


def test_reusing_the_source_topic_as_changelog_is_refused_under_existing_state():
    builder = ks.StreamsBuilder()
    builder.table("in", **TEXTS, materialized="rows")
    old, new = (fingerprint_of(builder.build({"topology.optimization": setting})) for setting in ("none", "all"))
    assert told(old, new) == ["refused: store 'rows' would be restored from in, before from rows-changelog"]


def test_a_changelog_may_be_given_up_but_not_begun_late():
    assert told(counted(), counted(logging=False)) == [
        "goes on: store 'counts' is no longer restored from counts-changelog"
    ]
    (text,) = told(counted(logging=False), counted())
    assert text == "refused: store 'counts' would be restored from counts-changelog, before from the local disk alone"


def test_a_store_may_move_to_memory_if_it_is_restored_from_somewhere():
    assert told(counted(), counted(store="counts", **{"logging": True})) == []
    memory = counted(**{"logging": False}), _in_memory(logging=False)
    assert told(*memory) == ["refused: store 'counts' moves to memory, but is restored from nowhere"]
    assert told(counted(), _in_memory()) == []


def _in_memory(**options):
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    return counted(builder=builder, **options)


def test_a_sub_topology_that_comes_before_moves_the_others():
    builder = ks.StreamsBuilder()
    builder.stream("first", **TEXTS).to("copy")
    new = counted(builder=builder)
    assert told(counted(), new) == ["goes on: store 'counts' moves from sub-topology 0 to 1"]
    assert moves(counted(), new) == {0: 1}
    (kept_by_number,) = changes(counted(), new, by_number=True)
    assert not kept_by_number.keeps


def test_where_state_lies_by_number_a_stateless_part_cannot_begin_to_keep_some():
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).group_by_key().count("counts").to_stream().to("out")
    builder.stream("other", **TEXTS).group_by_key().reduce(max, materialized="highest")
    refused = [
        change.text
        for change in changes(counted(), fingerprint_of(builder.build()), by_number=True)
        if not change.keeps
    ]
    assert refused == ["sub-topology 1 has no state yet to add the store 'highest' to"]


def test_sub_topologies_that_become_one_are_restored_from_changelogs():
    def two(joined):
        builder = ks.StreamsBuilder()
        left = builder.table("left", **TEXTS, materialized="left-rows")
        right = builder.stream("right", **TEXTS)
        right.group_by_key().count("right-counts")
        if joined:
            right.join(left, lambda a, b: a).to("out", **TEXTS)
        return fingerprint_of(builder.build())

    assert told(two(False), two(True)) == ["goes on: store 'right-counts' moves from sub-topology 1 to 0"]
    assert moves(two(False), two(True)) == {}


def test_a_refusal_lists_everything_and_says_what_to_do():
    text = refusal(changes(counted("a"), counted("b")), "the folder")
    assert text is not None
    assert text.startswith("The topology does not fit the state in the folder:\n  refused: store 'a' is renamed")
    assert "--reset" in text


def test_a_shape_is_kept_as_json():
    shape = counted(windows=ks.TimeWindows(size=MINUTE))
    assert decode_fingerprint(encode_fingerprint(shape), "it") == shape


def test_a_damaged_or_newer_shape_is_refused():
    with pytest.raises(StateError, match="it cannot be read"):
        decode_fingerprint(b'{"stores": 3}', "it")
    with pytest.raises(StateError, match="newer version"):
        decode_fingerprint(b'{"version": 99}', "it")
