"""kstreams: Kafka Streams for Python, on a native runtime and on Spark."""

from kstreams.dsl.builder import StreamsBuilder
from kstreams.dsl.emit import EmitStrategy
from kstreams.dsl.global_ktable import GlobalKTable
from kstreams.dsl.grouped import KGroupedStream
from kstreams.dsl.grouped_table import KGroupedTable
from kstreams.dsl.kstream import KStream
from kstreams.dsl.ktable import KTable
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.suppressed import Suppressed
from kstreams.dsl.windowed import TimeWindowedKStream
from kstreams.expressions import col, key, len, lit, struct, timestamp, value, window_end, window_start
from kstreams.processor.process_api import Processor
from kstreams.processor.punctuation import PunctuationType
from kstreams.processor.topology import Topology
from kstreams.record import Change, Record, RecordMetadata, ValueAndTimestamp, Window, Windowed
from kstreams.state.stores import Stores
from kstreams.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

__all__ = [
    "Change",
    "EmitStrategy",
    "GlobalKTable",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Materialized",
    "Processor",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "SessionWindows",
    "SlidingWindows",
    "Stores",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindowedKStream",
    "TimeWindows",
    "Topology",
    "UnlimitedWindows",
    "ValueAndTimestamp",
    "Window",
    "Windowed",
    "col",
    "key",
    "len",
    "lit",
    "struct",
    "timestamp",
    "value",
    "window_end",
    "window_start",
]
