"""`Operation`: the operations of expressions, and their text form."""

from __future__ import annotations

from enum import Enum


class Operation(Enum):
    """An operation; its value is the template of `repr`, with inputs as `{0}`, `{1}` and the detail as `{detail}`.

    Each target (`python`, `arrow`, `frame`, `types`, `exactness`) has one rule per operation; a test checks that none
    is missing.
    """

    # parts of a record
    FIELD = "ks.col({detail!r})"
    VALUE = "ks.value"
    RIGHT_FIELD = "ks.right.col({detail!r})"
    RIGHT = "ks.right.value"
    KEY = "ks.key"
    TIMESTAMP = "ks.timestamp"
    TOPIC = "ks.topic"
    PARTITION = "ks.partition"
    OFFSET = "ks.offset"
    HEADER = "ks.header({detail})"
    HEADERS = "ks.headers"
    WINDOW_START = "ks.window_start"
    WINDOW_END = "ks.window_end"
    COLUMN = "{detail}"  # a further column of a batch, such as the row of a table; its type is detail.kind
    LITERAL = "{detail!r}"
    # operations on one record
    ADD = "({0} + {1})"
    SUBTRACT = "({0} - {1})"
    MULTIPLY = "({0} * {1})"
    DIVIDE = "({0} / {1})"
    FLOOR_DIVIDE = "({0} // {1})"
    MODULO = "({0} % {1})"
    NEGATE = "(-{0})"
    EQUAL = "({0} == {1})"
    NOT_EQUAL = "({0} != {1})"
    LESS = "({0} < {1})"
    LESS_EQUAL = "({0} <= {1})"
    GREATER = "({0} > {1})"
    GREATER_EQUAL = "({0} >= {1})"
    AND = "({0} & {1})"
    OR = "({0} | {1})"
    NOT = "(~{0})"
    IS_NULL = "{0}.is_null()"
    IS_IN = "{0}.is_in({detail!r})"
    FILL_NULL = "{0}.fill_null({1})"
    IS_NAN = "{0}.is_nan()"
    ABS = "{0}.abs()"
    FLOOR = "{0}.floor()"
    CEIL = "{0}.ceil()"
    WHEN = "ks.when({0}).then({1})"
    CHOOSE = "ks.when({0}).then({1}).otherwise({2})"
    MEMBER = "{0}.struct.field({detail!r})"
    CAST = "{0}.cast({detail.__name__})"
    LENGTH = "{0}.str.len()"
    UPPER = "{0}.str.upper()"
    LOWER = "{0}.str.lower()"
    TITLE = "{0}.str.to_titlecase()"
    REVERSE = "{0}.str.reverse()"
    CONTAINS = "{0}.str.contains({detail!r})"
    MATCHES = "{0}.str.contains({detail!r}, literal=False)"
    STARTS_WITH = "{0}.str.starts_with({detail!r})"
    ENDS_WITH = "{0}.str.ends_with({detail!r})"
    SLICE = "{0}.str.slice{detail!r}"
    HEAD = "{0}.str.head({detail})"
    TAIL = "{0}.str.tail({detail})"
    STRIP = "{0}.str.strip_chars({detail!r})"
    STRIP_START = "{0}.str.strip_chars_start({detail!r})"
    STRIP_END = "{0}.str.strip_chars_end({detail!r})"
    STRIP_PREFIX = "{0}.str.strip_prefix({detail!r})"
    STRIP_SUFFIX = "{0}.str.strip_suffix({detail!r})"
    PAD_START = "{0}.str.pad_start{detail!r}"
    PAD_END = "{0}.str.pad_end{detail!r}"
    ZFILL = "{0}.str.zfill({detail})"
    REPLACE = "{0}.str.replace_all{detail!r}"
    REPLACE_MATCHES = "{0}.str.replace_all({detail[0]!r}, {detail[1]!r}, literal=False)"
    EXTRACT = "{0}.str.extract{detail!r}"
    SPLIT = "{0}.str.split({detail!r})"
    TO_INTEGER = "{0}.str.to_integer({detail})"
    DIGEST = "{0}.str.{detail}()"
    LIST_LENGTH = "{0}.list.len()"
    LIST_GET = "{0}.list.get({detail})"
    LIST_CONTAINS = "{0}.list.contains({detail!r})"
    LIST_JOIN = "{0}.list.join({detail!r})"
    DATE_PART = "{0}.dt.{detail}()"
    DATE = "{0}.dt.date()"
    EPOCH = "{0}.dt.epoch({detail!r})"
    TRUNCATE = "{0}.dt.truncate({detail!r})"
    OFFSET_BY = "{0}.dt.offset_by({detail!r})"
    FORMAT = "{0}.dt.to_string({detail!r})"
    STRUCT = "ks.struct({fields})"
    # aggregations of many records
    ROWS = "ks.len()"
    COUNT = "{0}.count()"
    SUM = "{0}.sum()"
    MIN = "{0}.min()"
    MAX = "{0}.max()"
    QUANTILE = "{0}.quantile{detail!r}"
    APPROX_DISTINCT = "{0}.approx_n_unique()"
    APPROX_QUANTILE = "{0}.approx_quantile({detail!r})"
    MIN_BY = "{0}.min_by({1})"
    MAX_BY = "{0}.max_by({1})"
    DISTINCT = "{0}.n_unique()"
    FIRST = "{0}.first()"
    LAST = "{0}.last()"
    COLLECT = "{0}.collect()"

    @property
    def is_leaf(self) -> bool:
        """True if the operation reads a part of the record."""
        return self in LEAVES

    @property
    def is_aggregation(self) -> bool:
        """True if the operation aggregates many records."""
        return self in AGGREGATIONS


OF_CURRENT_RECORD = frozenset(
    {Operation.TOPIC, Operation.PARTITION, Operation.OFFSET, Operation.HEADER, Operation.HEADERS}
)
"""Parts of the input record that a task processes, besides key, value and timestamp."""
BY_ANOTHER = (Operation.MIN_BY, Operation.MAX_BY)
"""Aggregations of pairs: the value that is returned, and the value by which it is chosen."""
SKETCHES = (Operation.APPROX_DISTINCT, Operation.APPROX_QUANTILE)
"""Approximate aggregations, whose state is a sketch."""
LEAVES = OF_CURRENT_RECORD | frozenset(
    {
        Operation.FIELD,
        Operation.VALUE,
        Operation.RIGHT_FIELD,
        Operation.RIGHT,
        Operation.KEY,
        Operation.TIMESTAMP,
        Operation.WINDOW_START,
        Operation.WINDOW_END,
        Operation.COLUMN,
    }
)
AGGREGATIONS = frozenset(
    {
        Operation.ROWS,
        Operation.COUNT,
        Operation.SUM,
        Operation.MIN,
        Operation.MAX,
        Operation.MIN_BY,
        Operation.MAX_BY,
        Operation.QUANTILE,
        Operation.APPROX_DISTINCT,
        Operation.APPROX_QUANTILE,
        Operation.DISTINCT,
        Operation.FIRST,
        Operation.LAST,
        Operation.COLLECT,
    }
)
