"""Times are checked where records enter: one out of range is a failure that handlers decide about, never the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError
from kstreams.kernel.batch import Row
from kstreams.kernel.timestamps import LATEST_MS, InvalidTimestampError
from tests.columns.both_paths import cut
from tests.columns.both_paths import run as on_path
from tests.error_policies.engines import LETTERS, row

CONTINUE = {f"{kind}_exception_handler": "continue" for kind in ("deserialization", "processing", "production")}
FOREVER = timedelta(days=999_999_999)
INVALID = "failed with InvalidTimestampError"


def stream(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("in", key=str, value=str)


def grouped(builder: ks.StreamsBuilder) -> Any:
    return stream(builder).group_by_key()


def windowed(windows: Any, **options: Any) -> Callable[[ks.StreamsBuilder], None]:
    def build(builder: ks.StreamsBuilder) -> None:
        found = grouped(builder).windowed_by(windows)
        if "emit" in options:
            found = found.emit_strategy(options["emit"])
        table = found.count()
        if "suppressed" in options:
            table = table.suppress(options["suppressed"])
        table.to_stream(lambda key, _: key.key, key=str).to("out", value=int)

    return build


def joined(how: str, **windows: Any) -> Callable[[ks.StreamsBuilder], None]:
    def build(builder: ks.StreamsBuilder) -> None:
        left = stream(builder)
        right = left.filter(lambda key, value: value != "1")
        both = getattr(left, how)(right, lambda a, b: f"{a}{b}", windows=ks.JoinWindows.of(**windows))
        both.to("out", value=str)

    return build


def with_versions(builder: ks.StreamsBuilder) -> None:
    kept = ks.Materialized("versions", history_retention=FOREVER)
    table = stream(builder).to_table(materialized=kept)
    table.to_stream().join(table, lambda a, b: f"{a}{b}", grace=5).to("out", value=str)


class Punctuated(ks.FixedKeyProcessor[str, str, str]):
    """Forwards what it gets, and counts time."""

    def init(self, context: Any) -> None:
        self.context = context
        context.schedule(10, ks.PunctuationType.STREAM_TIME, lambda time: None)
        context.schedule(FOREVER, ks.PunctuationType.STREAM_TIME, lambda time: None)

    def process(self, record: Any) -> None:
        self.context.forward(record)


STATEFUL: dict[str, Callable[[ks.StreamsBuilder], None]] = {
    "count": lambda b: grouped(b).count().to_stream().to("out", value=int),
    "tumbling": windowed(ks.TimeWindows(size=10, grace=5)),
    "tumbling for ever": windowed(ks.TimeWindows(size=FOREVER, grace=FOREVER)),
    "hopping": windowed(ks.TimeWindows(size=10, advance=4, grace=5)),
    "unlimited": windowed(ks.UnlimitedWindows()),
    "sliding": windowed(ks.SlidingWindows(difference=6, grace=5)),
    "sliding for ever": windowed(ks.SlidingWindows(difference=FOREVER, grace=FOREVER)),
    "sessions": windowed(ks.SessionWindows(gap=5, grace=5)),
    "sessions for ever": windowed(ks.SessionWindows(gap=FOREVER, grace=FOREVER)),
    "on close": windowed(ks.TimeWindows(size=10, grace=5), emit=ks.EmitStrategy.ON_WINDOW_CLOSE),
    "sessions on close": windowed(ks.SessionWindows(gap=5, grace=5), emit=ks.EmitStrategy.ON_WINDOW_CLOSE),
    "sliding on close": windowed(ks.SlidingWindows(difference=5, grace=5), emit=ks.EmitStrategy.ON_WINDOW_CLOSE),
    "suppressed windows": windowed(ks.TimeWindows(size=9), suppressed=ks.Suppressed.until_window_closes()),
    "suppressed sessions": windowed(ks.SessionWindows(gap=9), suppressed=ks.Suppressed.until_window_closes()),
    "suppressed": lambda b: _suppressed(b, 10),
    "suppressed for ever": lambda b: _suppressed(b, FOREVER),
    "deduplicated": lambda b: stream(b).deduplicate(7).to("out"),
    "deduplicated for ever": lambda b: stream(b).deduplicate(FOREVER).to("out"),
    "expiring": lambda b: stream(b).to_table().expire(after=20).to_stream().to("out"),
    "expiring never": lambda b: stream(b).to_table().expire(after=FOREVER).to_stream().to("out"),
    "join": joined("join", difference=6, grace=5),
    "join for ever": joined("join", difference=FOREVER, grace=FOREVER),
    "left join": joined("left_join", difference=6, grace=5),
    "outer join": joined("outer_join", difference=6, grace=5),
    "outer join for ever": joined("outer_join", difference=FOREVER, grace=FOREVER),
    "versions": with_versions,
    "punctuated": lambda b: stream(b).process_values(Punctuated, value=str).to("out"),
}


def _suppressed(builder: ks.StreamsBuilder, limit: Any) -> None:
    counts = grouped(builder).count().suppress(ks.Suppressed.until_time_limit(limit))
    counts.to_stream().to("out", value=int)


def built(name: str) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    STATEFUL[name](builder)
    return builder.build()


TIMES = st.one_of(
    st.integers(0, 100),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(LATEST_MS - 30, LATEST_MS + 30),
    st.sampled_from([0, -1, LATEST_MS, LATEST_MS + 1, 2**63 - 1, -(2**63)]),
)
ROWS = st.lists(
    st.builds(row, st.sampled_from([b"1", b"2", None]), st.sampled_from([b"a", b"b", None]), TIMES), max_size=25
)


@pytest.mark.parametrize("name", STATEFUL)
@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 30), max_size=3))
def test_no_time_ends_an_application_whose_handlers_continue(name: str, rows: list[Row], cuts: list[int]) -> None:
    batches = cut(rows, cuts)
    policies = {key.replace("_", "."): answer for key, answer in CONTINUE.items()}
    found = [on_path(built(name), batches, columns=columns, settings=policies) for columns in (True, False)]
    assert found[0] == found[1]
    out_of_range = sum(not 0 <= each.timestamp <= LATEST_MS for each in rows)
    dropped = {reason: count for (node, reason), count in found[0].dropped.items() if "SOURCE" in node}
    assert dropped.get(INVALID, 0) == out_of_range


def counts() -> ks.Topology:
    return built("suppressed windows")


BAD = [row(b"late", timestamp=2**63 - 1), row(b"early", timestamp=-5)]


def test_the_last_time_of_all_is_a_failure_of_its_record_alone(run: Any) -> None:
    rows = [row(b"a", timestamp=1), *BAD, row(b"b", timestamp=2)]
    seen = run(counts, rows, **CONTINUE, errors_dead_letter_queue_topic_name=LETTERS)
    assert seen.error is None
    assert seen.dropped == {("KSTREAM-SOURCE-0000000000", INVALID): 2}
    assert [letter.value for letter in seen.letters] == [b"late", b"early"]
    assert b"2^62" in dict(seen.letters[0].headers)["__streams.errors.message"]


def test_by_default_it_ends_the_run_and_names_the_record_and_the_range(run: Any) -> None:
    seen = run(counts, [row(b"a", timestamp=1), BAD[0]])
    assert isinstance(seen.error, ProcessingError)
    assert "in-0@1" in str(seen.error)
    assert "2^62" in str(seen.error)


def test_a_handler_of_ones_own_is_told_the_record_and_an_invalid_timestamp_error(run: Any) -> None:
    asked = []

    def handler(context: Any, record: Any, error: Exception) -> ks.Response:
        asked.append((context.offset, record.value, record.timestamp, type(error)))
        return ks.Response.resume()

    seen = run(counts, [row(b"a", timestamp=1), *BAD], deserialization_exception_handler=handler)
    assert seen.error is None
    assert asked == [(1, b"late", 2**63 - 1, InvalidTimestampError), (2, b"early", -5, InvalidTimestampError)]


@pytest.mark.parametrize("time", [LATEST_MS + 1, 2**63, 10**30])
def test_what_an_extractor_gives_is_checked_as_well(run: Any, time: int) -> None:
    def extracted() -> ks.Topology:
        builder = ks.StreamsBuilder()
        told = lambda record, _: time if record.value == "far" else record.timestamp  # noqa: E731
        builder.stream("in", key=str, value=str, timestamp_extractor=told).to("out")
        return builder.build()

    seen = run(extracted, [row(b"a"), row(b"far"), row(b"b")], **CONTINUE)
    assert seen.error is None
    assert seen.values() == [b"a", b"b"]
    assert list(seen.dropped.values()) == [1]


def test_extractors_that_skip_or_replace_invalid_times_do_so_with_those_too_late(run: Any) -> None:
    def copied(extractor: Any) -> Callable[[], ks.Topology]:
        def build() -> ks.Topology:
            builder = ks.StreamsBuilder()
            builder.stream("in", key=str, value=str, timestamp_extractor=extractor).to("out")
            return builder.build()

        return build

    rows = [row(b"a", timestamp=7), *BAD]
    skipped = run(copied(ks.LogAndSkipOnInvalidTimestamp), rows)
    assert skipped.values() == [b"a"]
    assert sorted(reason for _, reason in skipped.dropped) == ["negative timestamp", "timestamp out of range"]
    replaced = run(copied(ks.UsePartitionTimeOnInvalidTimestamp), rows)
    assert [each.timestamp for each in replaced.rows["out"]] == [7, 7, 7]


class Shifted(ks.Processor[str, str, str, str]):
    """Forwards under a time of its own."""

    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> None:
        self.context.forward(record.with_timestamp(int(record.value)))


def test_a_time_that_a_processor_forwards_is_a_failure_of_that_processor(run: Any) -> None:
    def shifted() -> ks.Topology:
        builder = ks.StreamsBuilder()
        moved = builder.stream("in", key=str, value=str).process(Shifted, key=str, value=str)
        moved.to_table().suppress(ks.Suppressed.until_time_limit(1)).to_stream().to("out")
        return builder.build()

    rows = [row(str(time).encode()) for time in (5, LATEST_MS + 1, 2**63, -1, 9)]
    seen = run(shifted, rows, **CONTINUE)
    assert seen.error is None
    assert seen.dropped == {("KSTREAM-PROCESSOR-0000000001", INVALID): 3}
    assert seen.values()[-1:] == [b"9"]


def test_a_duration_longer_than_any_sum_of_times_allows_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        ks.TimeWindows(size=10, grace=2**62)
