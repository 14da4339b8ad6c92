"""Topics, their settings and offsets, and what groups commit."""

import pytest

from kstreams.errors import ConfigError, LogError, TopicExistsError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log, OffsetAndMetadata
from tests.log.contract.reading import sources, values_of


def test_a_topic_is_described_as_it_was_created(log: Log) -> None:
    with log.admin() as admin:
        admin.create_topic("words", partitions=3, config={"cleanup.policy": "compact", "segment.bytes": "2097152"})
        topic = admin.describe_topic("words")
        assert (topic.name, topic.partitions) == ("words", 3)
        assert (topic.config["cleanup.policy"], topic.config["segment.bytes"]) == ("compact", "2097152")
        assert admin.topics()["words"] == topic


def test_a_topic_is_created_once(log: Log) -> None:
    log.admin().create_topic("words")
    with pytest.raises(TopicExistsError, match="words"):
        log.admin().create_topic("words")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ü", "a b", "x" * 250, "a\n"])
def test_a_name_that_kafka_refuses_is_refused(log: Log, name: str) -> None:
    with pytest.raises(ConfigError):
        log.admin().create_topic(name)
    assert log.admin().topics() == {}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"cleanup.polic": "compact"}, "cleanup.policy"),
        ({"cleanup.policy": "shrink"}, "compact"),
        ({"retention.ms": "long"}, "number"),
        ({"segment.bytes": "-5"}, "segment.bytes"),
        ({"compression.type": "rar"}, "zstd"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(log: Log, config: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        log.admin().create_topic("words", config=config)
    assert log.admin().topics() == {}


def test_no_partitions_are_too_few(log: Log) -> None:
    with pytest.raises(ConfigError):
        log.admin().create_topic("words", partitions=0)


def test_a_deleted_topic_is_gone_and_its_name_is_free(log: Log) -> None:
    with log.admin() as admin, log.producer() as producer:
        admin.create_topic("words")
        producer.send("words", b"k", b"old")
        producer.flush()
        admin.delete_topic("words")
        with pytest.raises(UnknownTopicError):
            admin.describe_topic("words")
        admin.create_topic("words")
        assert values_of(log, "words") == []
    with log.producer() as producer:
        producer.send("words", b"k", b"new")
    assert values_of(log, "words") == [b"new"]


def test_an_unknown_topic_is_named_with_the_nearest_known(log: Log) -> None:
    log.admin().create_topic("flights")
    for ask in (log.admin().describe_topic, log.admin().delete_topic):
        with pytest.raises(UnknownTopicError, match="'flights'"):
            ask("flight")


def test_an_unknown_topic_has_no_offsets(log: Log) -> None:
    log.admin().create_topic("words")
    for offsets in (log.admin().beginning_offsets, log.admin().end_offsets):
        with pytest.raises(UnknownTopicError, match="'wrds'"):
            offsets([TopicPartition("wrds", 0)])


def test_offsets_begin_at_zero_and_end_after_the_last_record(log: Log) -> None:
    log.admin().create_topic("words", partitions=2)
    with log.producer() as producer:
        for _ in range(5):
            producer.send("words", b"k", b"v", partition=1)
    first, second = sources("words", 2)
    assert log.admin().beginning_offsets([first, second]) == {first: 0, second: 0}
    assert log.admin().end_offsets([first, second]) == {first: 0, second: 5}


def test_deleted_records_are_not_read_again(log: Log) -> None:
    log.admin().create_topic("words", config={"segment.bytes": "1048576"})
    (source,) = sources("words")
    with log.producer() as producer:
        for i in range(100):
            producer.send("words", b"k", b"%d" % i)
            producer.flush()
    with log.admin() as admin:
        admin.delete_records({source: 42})
        assert admin.beginning_offsets([source]) == {source: 42}
        admin.delete_records({source: 7})
        assert admin.beginning_offsets([source]) == {source: 42}
        with pytest.raises(LogError, match="100"):
            admin.delete_records({source: 101})
    assert values_of(log, "words") == [b"%d" % i for i in range(42, 100)]


def test_what_a_group_commits_is_kept(log: Log) -> None:
    log.admin().create_topic("words", partitions=3)
    first, second, third = sources("words", 3)
    with log.admin() as admin:
        assert admin.committed("g", [first]) == {}
        admin.commit("g", {first: OffsetAndMetadata(5), second: OffsetAndMetadata(7, "memo")})
        admin.commit("g", {first: OffsetAndMetadata(6)})
        assert admin.committed("g", [first, second, third]) == {
            first: OffsetAndMetadata(6),
            second: OffsetAndMetadata(7, "memo"),
        }
        assert admin.committed("other", [first]) == {}


def test_committed_offsets_come_in_the_order_of_the_partitions_that_were_asked_for(log: Log) -> None:
    partitions = sources("words", 8)[::-1]
    with log.admin() as admin:
        admin.create_topic("words", partitions=8)
        admin.commit("g", {partition: OffsetAndMetadata(5) for partition in partitions[::3] + partitions})
        assert list(admin.committed("g", partitions)) == partitions


def test_groups_are_listed_and_deleted(log: Log) -> None:
    log.admin().create_topic("words")
    with log.admin() as admin:
        for group in ("b", "a"):
            admin.commit(group, {TopicPartition("words", 0): OffsetAndMetadata(1)})
        assert admin.groups() == ["a", "b"]
        admin.delete_group("a")
        assert admin.groups() == ["b"]
        assert admin.committed("a", sources("words")) == {}


def test_a_group_that_only_commits_is_empty_and_one_that_is_not_there_is_dead(log: Log) -> None:
    with log.admin() as admin:
        admin.create_topic("words")
        admin.commit("readers", {TopicPartition("words", 0): OffsetAndMetadata(1)})
        readers, nobody = admin.describe_group("readers"), admin.describe_group("nobody")
    assert (readers.name, readers.state, readers.members) == ("readers", "Empty", ())
    assert (nobody.state, nobody.members) == ("Dead", ())


def test_groups_are_described_together(log: Log) -> None:
    with log.admin() as admin:
        admin.create_topic("words")
        admin.commit("readers", {TopicPartition("words", 0): OffsetAndMetadata(1)})
        found = admin.describe_groups(["nobody", "readers"])
        assert list(found) == ["nobody", "readers"]
        assert [group.state for group in found.values()] == ["Dead", "Empty"]
        assert found["readers"] == admin.describe_group("readers")
        assert admin.describe_groups([]) == {}
