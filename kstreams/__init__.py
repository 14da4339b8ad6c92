"""kstreams: Kafka Streams for Python, on a native runtime and on Spark.

A name is imported when it is first used, so that `import kstreams` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kstreams import sinks, sources, spark
    from kstreams.config import Config
    from kstreams.dsl.aggregation.cogrouped import CogroupedKStream
    from kstreams.dsl.aggregation.grouped import KGroupedStream
    from kstreams.dsl.aggregation.windowed import SessionWindowedKStream, TimeWindowedKStream
    from kstreams.dsl.builder import StreamsBuilder
    from kstreams.dsl.graph import EmitStrategy
    from kstreams.dsl.materialized import Materialized
    from kstreams.dsl.streams.kstream import KStream
    from kstreams.dsl.tables.global_ktable import GlobalKTable
    from kstreams.dsl.tables.grouped_table import KGroupedTable
    from kstreams.dsl.tables.ktable import KTable
    from kstreams.dsl.tables.suppressed import Suppressed
    from kstreams.errors import KStreamsError
    from kstreams.expressions import (
        coalesce,
        col,
        header,
        headers,
        key,
        left,
        len,
        lit,
        offset,
        partition,
        right,
        struct,
        timestamp,
        topic,
        value,
        when,
        window_end,
        window_start,
    )
    from kstreams.kernel.retry import Retry
    from kstreams.kernel.timestamps import (
        FailOnInvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        UsePartitionTimeOnInvalidTimestamp,
        WallclockTimestampExtractor,
    )
    from kstreams.processor.api.contexts import FixedKeyProcessorContext, ProcessorContext
    from kstreams.processor.api.dead_letters import DeadLetter
    from kstreams.processor.api.error_handlers import ErrorHandlerContext, Response
    from kstreams.processor.api.processor import FixedKeyProcessor, Processor
    from kstreams.processor.api.punctuation import Cancellable, PunctuationType
    from kstreams.processor.topology.topology import Topology
    from kstreams.record import (
        AggregationWithHeaders,
        Change,
        FixedKeyRecord,
        ProducerRecord,
        Record,
        RecordMetadata,
        RecordWithMetadata,
        ValueAndTimestamp,
        ValueTimestampHeaders,
        Window,
        Windowed,
    )
    from kstreams.row_change import ChangeSource, ChangeTransaction, RowChange
    from kstreams.runtime.native.streams import KafkaStreams
    from kstreams.runtime.native.uncaught_exceptions import StreamThreadExceptionResponse
    from kstreams.serdes import Avro, ConnectJson, Debezium, Serde, serde_of
    from kstreams.serdes.json_schema import JsonSchema
    from kstreams.serdes.protobuf import Protobuf
    from kstreams.state.queries import (
        FailureReason,
        KeyQuery,
        MultiVersionedKeyQuery,
        RangeQuery,
        SessionKeyQuery,
        SessionKeyWithHeadersQuery,
        TimestampedKeyQuery,
        TimestampedKeyWithHeadersQuery,
        TimestampedRangeQuery,
        TimestampedRangeWithHeadersQuery,
        TimestampedWindowKeyWithHeadersQuery,
        TimestampedWindowRangeWithHeadersQuery,
        VersionedKeyQuery,
        WindowKeyQuery,
        WindowRangeQuery,
    )
    from kstreams.state.read_only_store import (
        ReadOnlyKeyValueStore,
        ReadOnlySessionStore,
        ReadOnlyVersionedStore,
        ReadOnlyWindowStore,
    )
    from kstreams.state.store_builder import StoreBuilder
    from kstreams.state.stores import Stores
    from kstreams.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

_HOMES = {
    "kstreams.config": ("Config",),
    "kstreams.dsl.builder": ("StreamsBuilder",),
    "kstreams.dsl.aggregation.cogrouped": ("CogroupedKStream",),
    "kstreams.dsl.graph": ("EmitStrategy",),
    "kstreams.dsl.tables.global_ktable": ("GlobalKTable",),
    "kstreams.dsl.aggregation.grouped": ("KGroupedStream",),
    "kstreams.dsl.tables.grouped_table": ("KGroupedTable",),
    "kstreams.dsl.streams.kstream": ("KStream",),
    "kstreams.dsl.tables.ktable": ("KTable",),
    "kstreams.dsl.materialized": ("Materialized",),
    "kstreams.dsl.tables.suppressed": ("Suppressed",),
    "kstreams.dsl.aggregation.windowed": ("SessionWindowedKStream", "TimeWindowedKStream"),
    "kstreams.errors": ("KStreamsError",),
    "kstreams.expressions": (
        "coalesce",
        "col",
        "header",
        "headers",
        "key",
        "left",
        "len",
        "lit",
        "offset",
        "partition",
        "right",
        "struct",
        "timestamp",
        "topic",
        "value",
        "when",
        "window_end",
        "window_start",
    ),
    "kstreams.processor.api.dead_letters": ("DeadLetter",),
    "kstreams.processor.api.error_handlers": ("ErrorHandlerContext", "Response"),
    "kstreams.processor.api.processor": ("FixedKeyProcessor", "Processor"),
    "kstreams.processor.api.contexts": ("FixedKeyProcessorContext", "ProcessorContext"),
    "kstreams.processor.api.punctuation": ("Cancellable", "PunctuationType"),
    "kstreams.kernel.retry": ("Retry",),
    "kstreams.processor.topology.topology": ("Topology",),
    "kstreams.record": (
        "AggregationWithHeaders",
        "Change",
        "FixedKeyRecord",
        "ProducerRecord",
        "Record",
        "RecordMetadata",
        "RecordWithMetadata",
        "ValueAndTimestamp",
        "ValueTimestampHeaders",
        "Window",
        "Windowed",
    ),
    "kstreams.runtime.native.streams": ("KafkaStreams",),
    "kstreams.runtime.native.uncaught_exceptions": ("StreamThreadExceptionResponse",),
    "kstreams.row_change": ("ChangeSource", "ChangeTransaction", "RowChange"),
    "kstreams.serdes": ("Avro", "ConnectJson", "Debezium", "Serde", "serde_of"),
    "kstreams.serdes.json_schema": ("JsonSchema",),
    "kstreams.serdes.protobuf": ("Protobuf",),
    "kstreams.state.queries": (
        "FailureReason",
        "KeyQuery",
        "MultiVersionedKeyQuery",
        "RangeQuery",
        "SessionKeyQuery",
        "SessionKeyWithHeadersQuery",
        "TimestampedKeyQuery",
        "TimestampedKeyWithHeadersQuery",
        "TimestampedRangeQuery",
        "TimestampedRangeWithHeadersQuery",
        "TimestampedWindowKeyWithHeadersQuery",
        "TimestampedWindowRangeWithHeadersQuery",
        "VersionedKeyQuery",
        "WindowKeyQuery",
        "WindowRangeQuery",
    ),
    "kstreams.state.read_only_store": (
        "ReadOnlyKeyValueStore",
        "ReadOnlySessionStore",
        "ReadOnlyVersionedStore",
        "ReadOnlyWindowStore",
    ),
    "kstreams.state.store_builder": ("StoreBuilder",),
    "kstreams.state.stores": ("Stores",),
    "kstreams.kernel.timestamps": (
        "FailOnInvalidTimestamp",
        "LogAndSkipOnInvalidTimestamp",
        "UsePartitionTimeOnInvalidTimestamp",
        "WallclockTimestampExtractor",
    ),
    "kstreams.windows": ("JoinWindows", "SessionWindows", "SlidingWindows", "TimeWindows", "UnlimitedWindows"),
}
_MODULES = {"sinks": "kstreams.sinks", "sources": "kstreams.sources", "spark": "kstreams.spark"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names} | _MODULES

__all__ = [
    "AggregationWithHeaders",
    "Avro",
    "Cancellable",
    "Change",
    "ChangeSource",
    "ChangeTransaction",
    "CogroupedKStream",
    "Config",
    "ConnectJson",
    "DeadLetter",
    "Debezium",
    "EmitStrategy",
    "ErrorHandlerContext",
    "FailOnInvalidTimestamp",
    "FailureReason",
    "FixedKeyProcessor",
    "FixedKeyProcessorContext",
    "FixedKeyRecord",
    "GlobalKTable",
    "JoinWindows",
    "JsonSchema",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KStreamsError",
    "KTable",
    "KafkaStreams",
    "KeyQuery",
    "LogAndSkipOnInvalidTimestamp",
    "Materialized",
    "MultiVersionedKeyQuery",
    "Processor",
    "ProcessorContext",
    "ProducerRecord",
    "Protobuf",
    "PunctuationType",
    "RangeQuery",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyVersionedStore",
    "ReadOnlyWindowStore",
    "Record",
    "RecordMetadata",
    "RecordWithMetadata",
    "Response",
    "Retry",
    "RowChange",
    "Serde",
    "SessionKeyQuery",
    "SessionKeyWithHeadersQuery",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "StoreBuilder",
    "Stores",
    "StreamThreadExceptionResponse",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindowedKStream",
    "TimeWindows",
    "TimestampedKeyQuery",
    "TimestampedKeyWithHeadersQuery",
    "TimestampedRangeQuery",
    "TimestampedRangeWithHeadersQuery",
    "TimestampedWindowKeyWithHeadersQuery",
    "TimestampedWindowRangeWithHeadersQuery",
    "Topology",
    "UnlimitedWindows",
    "UsePartitionTimeOnInvalidTimestamp",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
    "VersionedKeyQuery",
    "WallclockTimestampExtractor",
    "Window",
    "WindowKeyQuery",
    "WindowRangeQuery",
    "Windowed",
    "coalesce",
    "col",
    "header",
    "headers",
    "key",
    "left",
    "len",
    "lit",
    "offset",
    "partition",
    "right",
    "serde_of",
    "sinks",
    "sources",
    "spark",
    "struct",
    "timestamp",
    "topic",
    "value",
    "when",
    "window_end",
    "window_start",
]


DISTRIBUTION = "kstreams-dsl"
"""The distribution of this file; another distribution has a package of the same name."""

_ELSEWHERE = {
    **dict.fromkeys(("TopologyTestDriver", "MockProcessorContext"), "import it from kstreams.testing"),
    **dict.fromkeys(
        ("TopologyError", "ProcessingError", "ConfigError", "SerdeError"), "import it from kstreams.errors"
    ),
    **dict.fromkeys(
        ("Consumed", "Produced", "Grouped", "Joined", "StreamJoined", "Repartitioned", "Serdes", "Named", "Branched"),
        "its place is taken by the keywords key=, value= and name=",
    ),
    "TumblingWindows": "write TimeWindows(size=...)",
    "HoppingWindows": "write TimeWindows(size=..., advance=...)",
    "KeyValue": "write a pair, as (key, value)",
    "JsonSerde": "declare a type, as value=dict or a dataclass, or import it from kstreams.serdes",
    **{name: f"write {name}() behind an expression, as ks.col('x').{name}()" for name in ("sum", "min", "max", "mean")},
    "count": "write ks.len(), or count() behind an expression",
}
"""By names that users may look for here: where they are, or what to write instead."""


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        from kstreams.kernel.advice import nearest_name

        near = nearest_name(name, __all__)
        hint = _ELSEWHERE.get(name) or (f"did you mean {near}?" if near else "help(kstreams) lists what it has")
        raise AttributeError(f"module 'kstreams' has no attribute {name!r}: {hint}", name=name)
    try:
        home = import_module(_HOME_OF[name])
    except ImportError as error:
        from kstreams.own_files import explanation

        if sentence := explanation(error):
            raise ImportError(sentence, name=error.name) from error
        raise
    value = globals()[name] = home if name in _MODULES else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
