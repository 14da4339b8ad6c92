"""Failed calls are repeated: the record waits, later records of its key wait behind it, all others go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver

RETRY = ks.Retry(backoff="1s", factor=2, max_delay="3s", attempts=4, on=(TimeoutError,))


class Service:
    """A service that fails for texts with "bad" in them while it is down, and always for "odd"; it notes its calls."""

    def __init__(self) -> None:
        self.is_down = True
        self.calls: list[str] = []

    def __call__(self, value: str) -> str:
        self.calls.append(value)
        if self.is_down and "bad" in value:
            raise TimeoutError(f"no answer for {value}")
        if value == "odd":
            raise ValueError(value)
        return value.upper()


class Driven:
    """An application from topic "in" to topic "out", on the test driver whose clock begins at 0."""

    def __init__(self, driver: TopologyTestDriver) -> None:
        self.driver = driver
        self._in = driver.create_input_topic("in", key=str, value=str)
        self._out = driver.create_output_topic("out", key=str, value=str)

    def pipe(self, key: str | None, value: str, timestamp: int = 0, headers: Any = ()) -> None:
        self._in.pipe_input(key, value, timestamp, headers=headers)

    def wait(self, seconds: float) -> None:
        self.driver.advance_wall_clock_time(timedelta(seconds=seconds))

    def records(self) -> list[ks.Record]:
        return self._out.read_records()

    def values(self) -> list[str]:
        return [record.value for record in self.records()]

    def parked(self) -> list[ks.Record]:
        return self.driver.create_output_topic("parked", key=str, value=str).read_records()


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def driven(service: Service) -> Iterator[Driven]:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.map_values(service, value=str, retry=RETRY, park="parked", name="ask").to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        yield Driven(driver)


def test_a_record_that_fails_waits_and_other_keys_go_on(driven: Driven, service: Service) -> None:
    driven.pipe("a", "bad")
    driven.pipe("b", "good")
    assert driven.values() == ["GOOD"]
    service.is_down = False
    driven.wait(0.9)
    assert driven.values() == []
    driven.wait(0.1)
    assert driven.values() == ["BAD"]


def test_later_records_of_its_key_wait_behind_it_without_a_call(driven: Driven, service: Service) -> None:
    for key, value in [("a", "bad"), ("a", "second"), ("b", "other"), ("a", "third")]:
        driven.pipe(key, value)
    assert service.calls == ["bad", "other"]
    service.is_down = False
    driven.wait(1)
    assert driven.values() == ["OTHER", "BAD", "SECOND", "THIRD"]


def test_a_record_without_a_key_waits_alone(driven: Driven) -> None:
    driven.pipe(None, "bad")
    driven.pipe(None, "good")
    assert driven.values() == ["GOOD"]


def test_waits_grow_by_the_factor_up_to_the_longest_and_end_after_the_attempts(
    driven: Driven, service: Service
) -> None:
    driven.pipe("a", "bad")
    calls_after_second = []
    for _ in range(8):
        driven.wait(1)
        calls_after_second.append(len(service.calls))
    assert calls_after_second == [2, 2, 3, 3, 3, 4, 4, 4], "waits of 1 s, 2 s, and 3 s instead of 4 s"


def test_after_the_last_attempt_a_record_is_parked_with_its_history(driven: Driven) -> None:
    driven.wait(5)
    driven.pipe("a", "fine")
    driven.pipe("a", "bad", timestamp=70, headers=[("trace", b"7")])
    driven.wait(60)
    for _ in range(3):
        driven.wait(3)
    (record,) = driven.parked()
    assert (record.key, record.value, record.timestamp) == ("a", "bad", 70)
    headers = dict(record.headers)
    assert headers.pop("__streams.errors.stacktrace").startswith(b"Traceback (most recent call last)")
    assert headers == {
        "trace": b"7",
        "__streams.errors.exception": b"TimeoutError: no answer for bad",
        "__streams.errors.message": b"no answer for bad",
        "__streams.errors.topic": b"in",
        "__streams.errors.partition": b"0",
        "__streams.errors.offset": b"1",
        "__streams.errors.application": b"test",
        "__streams.errors.operator": b"ask",
        "__streams.errors.attempts": b"4",
        "__streams.errors.first.time": b"5000",
        "__streams.errors.last.time": b"71000",
    }


def test_records_behind_a_parked_one_go_on(driven: Driven) -> None:
    driven.pipe("a", "bad")
    driven.pipe("a", "good")
    for _ in range(3):
        driven.wait(3)
    assert driven.values() == ["GOOD"]


def test_a_record_keeps_its_timestamp_and_headers(driven: Driven, service: Service) -> None:
    driven.pipe("a", "bad", timestamp=5, headers=[("trace", b"7")])
    driven.pipe("b", "good", timestamp=900, headers=[("trace", b"8")])
    service.is_down = False
    driven.wait(1)
    assert [(record.value, record.timestamp, record.headers) for record in driven.records()] == [
        ("GOOD", 900, (("trace", b"8"),)),
        ("BAD", 5, (("trace", b"7"),)),
    ]


def test_another_error_is_handled_as_without_a_retry(driven: Driven) -> None:
    with pytest.raises(ProcessingError, match=r"ask \(map_values\(\) at .*test_retry.py:\d+\) failed on record in-0@0"):
        driven.pipe("a", "odd")


def test_a_handler_that_continues_skips_the_record_with_another_error() -> None:
    calls: list[str] = []

    def call(value: str) -> str:
        calls.append(value)
        if value == "bad":
            raise TimeoutError if calls.count("bad") == 1 else ValueError("of another kind")
        return value

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(call, retry=RETRY).to("out")
    settings = {"processing.exception.handler": "continue"}
    with TopologyTestDriver(builder.build(), settings, start_ms=0) as driver:
        driven = Driven(driver)
        driven.pipe("a", "bad")
        driven.pipe("a", "next")
        driven.wait(1)
        assert driven.values() == ["next"]
        assert driver.dropped == Counter({("KSTREAM-MAPVALUES-0000000001", "failed with ValueError"): 1})


def test_without_a_parking_topic_the_last_error_goes_to_the_handler(service: Service) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(service, value=str, retry=RETRY).to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driven = Driven(driver)
        driven.pipe("a", "bad")
        driven.wait(3)
        driven.wait(3)
        with pytest.raises(ProcessingError, match=r"TimeoutError.*no answer for bad"):
            driven.wait(3)


def test_an_error_after_the_operator_is_not_retried(service: Service) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    asked = stream.map_values(service, value=str, retry=ks.Retry(on=Exception), park="parked")
    asked.map_values(lambda value: {}[value], value=str).to("out")
    with (
        TopologyTestDriver(builder.build(), start_ms=0) as driver,
        pytest.raises(ProcessingError, match=r"KSTREAM-MAPVALUES-0000000002.*KeyError"),
    ):
        Driven(driver).pipe("a", "good")


def test_a_function_of_the_whole_record_sees_the_place_of_its_record_again() -> None:
    seen: list[tuple[Any, ...]] = []

    def call(record: ks.RecordWithMetadata[str, str]) -> str:
        seen.append((record.value, record.topic, record.offset, record.timestamp, record.headers))
        if len(seen) == 1:
            raise TimeoutError
        return record.value

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(call, with_record=True, value=str, retry=RETRY).to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driven = Driven(driver)
        driven.pipe("a", "first", 3, [("trace", b"7")])
        driven.pipe("b", "second", 4)
        driven.wait(1)
    first = ("first", "in", 0, 3, (("trace", b"7"),))
    assert seen == [first, ("second", "in", 1, 4, ()), first]


# --- other operators --------------------------------------------------------------------------------------------------


def flaky(calls: Counter[Any], key: Any) -> None:
    calls[key] += 1
    if calls[key] == 1:
        raise TimeoutError


@pytest.mark.parametrize("operator", ["filter", "map", "flat_map", "flat_map_values", "select_key", "peek"])
def test_every_operator_with_a_function_retries(operator: str) -> None:
    calls: Counter[Any] = Counter()

    def generated(value: str) -> Iterator[str]:
        yield value
        flaky(calls, value)

    functions: dict[str, Any] = {
        "filter": lambda key, value: flaky(calls, value) or True,
        "map": lambda key, value: flaky(calls, value) or (key, value),
        "flat_map": lambda key, value: flaky(calls, value) or [(key, value)],
        "flat_map_values": generated,
        "select_key": lambda key, value: flaky(calls, value) or key,
        "peek": lambda key, value: flaky(calls, value),
    }
    builder = ks.StreamsBuilder()
    stream = getattr(builder.stream("in", key=str, value=str), operator)(functions[operator], retry=RETRY)
    stream.to("out", key=str, value=str)
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driven = Driven(driver)
        driven.pipe("a", "x")
        driven.pipe("a", "y")
        assert driven.records() == []
        driven.wait(1)
        assert driven.values() == ["x"]
        driven.wait(1)
        assert driven.values() == ["y"]


class Sending(ks.FixedKeyProcessor[str, str, str]):
    """Forwards, then calls a service that may fail."""

    service: Service

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        self.context.forward(record.with_value(f"about {record.value}"))
        self.context.forward(record.with_value(self.service(record.value)))


def test_a_processor_forwards_nothing_of_a_call_that_fails(service: Service) -> None:
    def supply() -> Sending:
        processor = Sending()
        processor.service = service
        return processor

    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.process_values(supply, value=str, retry=RETRY, park="parked").to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driven = Driven(driver)
        driven.pipe("a", "bad", headers=[("trace", b"7")])
        driven.pipe("a", "good")
        assert driven.records() == []
        service.is_down = False
        driven.wait(1)
        records = driven.records()
        assert [record.value for record in records] == ["about bad", "BAD", "about good", "GOOD"]
        assert records[0].headers == (("trace", b"7"),)


# --- async functions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, "by_key", False])
def test_async_calls_are_retried_and_those_of_a_key_come_one_after_the_other(ordered: Any) -> None:
    calls: list[str] = []

    async def ask(value: str) -> str:
        calls.append(value)
        await asyncio.sleep(0)
        if value == "bad" and calls.count("bad") < 3:
            raise TimeoutError
        return value.upper()

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(ask, retry=RETRY, concurrency=4, ordered=ordered).to("out")
    config = {"statestore.cache.max.bytes": 0}  # so that the driver runs all records before it commits
    with TopologyTestDriver(builder.build(), config, start_ms=0) as driver:
        driven = Driven(driver)
        topic = driver.create_input_topic("in", key=str, value=str)
        rows = [("a", "bad"), ("a", "next"), ("b", "x"), ("b", "y"), ("c", "z")]
        driver.pipe_batch([(topic, ks.Record(key=key, value=value, timestamp=0)) for key, value in rows])
        assert sorted(driven.values()) == ["X", "Y", "Z"]
        assert "next" not in calls
        driven.wait(1)
        driven.wait(2)
        assert driven.values() == ["BAD", "NEXT"]
        assert calls.count("bad") == 3


def test_an_async_call_that_takes_too_long_is_retried() -> None:
    calls: list[str] = []

    async def ask(value: str) -> str:
        calls.append(value)
        if len(calls) == 1:
            await asyncio.Event().wait()
        return value.upper()

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(ask, retry=RETRY, timeout=20).to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driven = Driven(driver)
        driven.pipe("a", "slow")
        assert driven.records() == []
        driven.wait(1)
        assert driven.values() == ["SLOW"]


# --- declaration ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attempts": 0}, r"attempts=0\) makes no call"),
        ({"factor": 0.5}, r"factor=0.5\) would shorten the waits"),
        ({"backoff": "soon"}, "'soon' is not a duration: write a number with ms, s, m, h or d"),
        ({"max_delay": 0}, r"max_delay=0\) is no wait"),
        ({"on": ("TimeoutError",)}, "names no errors: give exception types"),
        ({"on": ()}, "names no errors"),
    ],
)
def test_a_retry_that_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        ks.Retry(**settings)


def test_a_parking_topic_without_a_retry_is_refused() -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=str)
    with pytest.raises(TopologyError, match=r"park='parked' at .*test_retry.py:\d+ needs retry="):
        stream.map_values(str.upper, park="parked")


def test_an_expression_is_not_retried() -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=str)
    with pytest.raises(TopologyError, match="is computed, not called: retry and park are for functions"):
        stream.map_values(ks.value, retry=RETRY)


def test_two_operators_do_not_share_a_parking_topic() -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    for name in ("one", "two"):
        stream.map_values(str.upper, value=str, retry=RETRY, park="parked", name=name)
    with pytest.raises(
        TopologyError, match=r"two \(.*\) parks records in topic .parked., as one \(.*\) does: give each"
    ):
        builder.build()


def test_types_must_be_known_since_records_are_stored() -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str).map_values(lambda value: value)
    stream.map_values(str.upper, value=str, retry=RETRY).to("out")
    with pytest.raises(TopologyError, match="must know the type of its value to let its records wait"):
        builder.build()
