"""A processor tested alone: the mock context remembers what it did and answers as the test says."""

from __future__ import annotations

from datetime import timedelta

import pytest

import kstreams as ks
from kstreams.errors import StateError, TopologyError
from kstreams.testing import MockProcessorContext


class Sum(ks.Processor):
    """Sums values; says the sum every minute, to `big` when it is above ten, and asks for a commit."""

    def init(self, context):
        self.context, self.sums = context, context.get_state_store("sums")
        self.schedule = context.schedule(timedelta(minutes=1), ks.PunctuationType.STREAM_TIME, self.tell)

    def process(self, record):
        self.sums.put(record.key, (self.sums.get(record.key) or 0) + record.value)
        self.context.metrics.add_sensor("summed").record(record.value)

    def tell(self, now):
        for key, value in self.sums.all():
            record = ks.Record(key=key, value=value, timestamp=now)
            self.context.forward(record, "big" if value > 10 else "small")
        self.context.commit()


@pytest.fixture
def context():
    context = MockProcessorContext()
    context.add_state_store(ks.Stores.key_value("sums", key=str, value=int))
    return context


@pytest.fixture
def processor(context):
    processor = Sum()
    processor.init(context)
    return processor


def test_a_punctuator_is_called_by_the_test(context, processor):
    processor.process(ks.Record(key="a", value=20))
    processor.process(ks.Record(key="b", value=1))
    (punctuator,) = context.scheduled_punctuators()
    assert (punctuator.interval_ms, punctuator.kind) == (60_000, ks.PunctuationType.STREAM_TIME)
    assert context.forwarded() == []
    punctuator.callback(5)
    assert [(sent.record.key, sent.record.value, sent.child) for sent in context.forwarded()] == [
        ("a", 20, "big"),
        ("b", 1, "small"),
    ]
    assert [sent.record.timestamp for sent in context.forwarded("big")] == [5]


def test_what_was_captured_can_be_forgotten(context, processor):
    processor.process(ks.Record(key="a", value=20))
    processor.tell(5)
    assert context.committed()
    context.reset_forwards()
    context.reset_commit()
    assert not context.forwarded()
    assert not context.committed()


def test_a_record_for_all_children_is_one_for_each_of_them(context):
    context.forward(ks.Record(key="a", value=1))
    context.forward(ks.Record(key="a", value=2), "other")
    assert [sent.record.value for sent in context.forwarded("one")] == [1]
    assert [sent.record.value for sent in context.forwarded()] == [1, 2]


def test_cancelled_punctuators_are_shown_as_such(context, processor):
    processor.schedule.cancel()
    assert [punctuator.cancelled for punctuator in context.scheduled_punctuators()] == [True]
    with pytest.raises(TopologyError, match="at least 1 ms"):
        context.schedule(0, ks.PunctuationType.STREAM_TIME, print)


def test_stores_are_there_for_the_test_too(context, processor):
    processor.process(ks.Record(key="a", value=2))
    assert context.get_state_store("sums").get("a") == 2
    assert context.metrics.add_sensor("summed").measured.total == 2
    with pytest.raises(TopologyError, match="'other': add it with add_state_store\\(\\) \\(there: sums\\)"):
        context.get_state_store("other")


def test_the_test_says_where_and_when(tmp_path):
    context = MockProcessorContext(
        {"num.stream.threads": 2, "topic.retention.ms": "5"}, task_id="1_3", state_dir=tmp_path
    )
    assert (context.application_id, context.task_id, context.state_dir) == ("test", "1_3", tmp_path)
    assert context.app_configs()["num.stream.threads"] == 2
    assert context.app_configs_with_prefix("topic.") == {"retention.ms": "5"}
    assert context.record_metadata() is None
    assert (context.current_stream_time_ms(), context.current_system_time_ms()) == (-1, 0)
    context.set_record_metadata("in", 2, 7)
    context.set_current_stream_time_ms(11)
    context.set_current_system_time_ms(12)
    assert context.record_metadata() == ks.RecordMetadata("in", 2, 7)
    assert (context.current_stream_time_ms(), context.current_system_time_ms()) == (11, 12)
    with pytest.raises(StateError, match="state_dir="):
        MockProcessorContext().state_dir


def test_it_serves_fixed_key_processors_too():
    class Length(ks.FixedKeyProcessor):
        def init(self, context):
            self.context = context

        def process(self, record):
            self.context.forward(record.with_value(len(record.value)))

    context, processor = MockProcessorContext(), Length()
    processor.init(context)
    processor.process(ks.FixedKeyRecord(key="k", value="four"))
    assert [sent.record.value for sent in context.forwarded()] == [4]


@pytest.mark.parametrize("real", [ks.ProcessorContext, ks.FixedKeyProcessorContext])
def test_it_answers_for_all_that_a_real_context_has(real):
    public = {name for name in dir(real) if not name.startswith("_")}
    assert public <= set(vars(MockProcessorContext))
