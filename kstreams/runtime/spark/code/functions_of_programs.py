"""The functions that a program defines before its queries, as text; it gets those that it calls."""

from __future__ import annotations

import re

SOURCES: dict[str, str] = {
    "FROM_JSON": 'FROM_JSON = {"allowSingleQuotes": "false", "columnNameOfCorruptRecord": "corrupt"}',
    "RECORD": 'RECORD = ["key", "value", "timestamp", "topic", "partition", "offset"]',
    "RowFilter": "RowFilter = Callable[[DataFrame], DataFrame]",
    "Predicate": "Predicate = Callable[[Column], Column]",
    "TO_JSON": 'TO_JSON = {"ignoreNullFields": "false"}',
    "read": '''def read(topics: str) -> DataFrame:
    """Read topics from their first records on."""
    records = spark.readStream.format("kafka").options(**READ, maxOffsetsPerTrigger=BATCH)
    return records.option("subscribe", topics).load().select(RECORD)''',
    "read_by_partition": '''\
def read_by_partition(topics: dict[str, int], delay: str, skip: RowFilter | None = None) -> DataFrame:
    """Read topics with a watermark for each partition, of which the least counts.

    With one watermark for all, the records of a partition that is behind the others would be dropped. What `skip`
    leaves out moves no watermark.
    """
    share = max(1, BATCH // sum(topics.values()))
    partitions = [json.dumps({topic: [number]}) for topic, count in topics.items() for number in range(count)]
    records = [
        spark.readStream.format("kafka").options(**READ, maxOffsetsPerTrigger=share).option("assign", partition).load()
        for partition in partitions
    ]
    taken = [of_partition.select(RECORD) if skip is None else skip(of_partition) for of_partition in records]
    return reduce(DataFrame.union, [rows.withWatermark("timestamp", delay) for rows in taken])''',
    "records_of": '''def records_of(topic: str) -> DataFrame:
    """Return the records of a topic, which are read anew in every batch."""
    return spark.read.format("kafka").options(**READ).option("subscribe", topic).load()''',
    "read_table": '''def read_table(topic: str) -> DataFrame:
    """Read the last value of each key of a topic."""
    rows = records_of(topic).where(F.col("key").isNotNull()).groupBy("key")
    last = rows.agg(F.max_by(F.struct(RECORD[1:]), F.struct("partition", "offset")).alias("last"))
    return last.select("key", "last.*").where(F.col("value").isNotNull())''',
    "from_json": '''def from_json(column: Column, schema: str, holds: Predicate | None = None) -> Column:
    """Decode JSON; a text that is no value of the schema, or has more behind its end, is null."""
    whole = F.concat(F.lit('{"value":'), text(column), F.lit(',"end":true}'))
    parsed = F.from_json(whole, f"value {schema}, end boolean, corrupt string", FROM_JSON)
    is_value = parsed["corrupt"].isNull() & parsed["end"] & parsed["value"].isNotNull()
    return F.when(is_value if holds is None else is_value & holds(parsed["value"]), parsed["value"])''',
    "can_read": '''def can_read(name: str, decoded: Column) -> Column:
    """Whether a key or value is null, or is decoded."""
    return F.col(name).isNull() | decoded.isNotNull()''',
    "required": '''def required(decoded: Column) -> Column:
    """Return the decoded value of a record; one that cannot be decoded ends the query."""
    return F.coalesce(decoded, F.when(F.col("value").isNotNull(), refusal()))''',
    "refusal": '''def refusal() -> Column:
    """End the query at a record that cannot be read; the error says where it is."""
    return F.raise_error(F.format_string("cannot read %s-%d@%d", "topic", "partition", "offset"))''',
    "skip_unreadable": '''def skip_unreadable(name: str, key: Column, value: Column) -> RowFilter:
    """Leave out records whose key or value cannot be decoded; the progress of the query counts them."""
    numbers = iter(range(1_000))

    def skip(records: DataFrame) -> DataFrame:
        decoded = records.withColumns({"decoded_key": key, "decoded": value})
        is_readable = can_read("key", F.col("decoded_key")) & can_read("value", F.col("decoded"))
        unreadable = F.count_if(~F.col("is_readable")).alias("unreadable")
        observed = decoded.withColumn("is_readable", is_readable).observe(f"{name}-{next(numbers)}", unreadable)
        return observed.where("is_readable").select("key", F.col("decoded").alias("value"), "timestamp")

    return skip''',
    "dead_letters": '''def dead_letters(key: Column, value: Column) -> RowFilter:
    """Keep records whose key or value cannot be decoded, as they were read; headers say where they were."""
    is_readable = can_read("key", key) & can_read("value", value)
    message = F.format_string("cannot read %s-%d@%d", "topic", "partition", "offset")
    texts = {"exception": message, "message": message} | {name: F.col(name) for name in RECORD[3:]}
    headers = [
        F.struct(F.lit(f"__streams.errors.{name}").alias("key"), text.cast("string").cast("binary").alias("value"))
        for name, text in texts.items()
    ]
    return lambda records: records.where(~is_readable).withColumn("headers", F.array(*headers))''',
    "is_datetime": '''def is_datetime(text: Column, *, has_zone: bool | None = None) -> Column:
    """Whether a text is a date and a time of RFC 3339, with a zone or without one."""
    date_and_time = r"(?!0000)\\d{4}-\\d\\d-\\d\\d[Tt ]\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,6})?"
    zone = r"([Zz]|[+-]([01]\\d|2[0-3]):?[0-5]\\d)" + {None: "?", True: "", False: "{0}"}[has_zone]
    is_possible = F.try_to_timestamp(F.translate(F.substring(text, 1, 19), "t", "T")).isNotNull()
    return text.rlike(f"^{date_and_time}{zone}$") & is_possible''',
    "datetime_text": '''def datetime_text(text: Column) -> Column:
    """Give a datetime the notation of msgspec: T, no or six digits of a second, Z or an offset with a colon."""
    rest = F.substring(text, 20, 16)
    fraction = F.rpad(F.regexp_extract(rest, r"\\.(\\d+)", 1), 6, "0")
    zone = F.regexp_replace(F.regexp_extract(rest, r"[Zz+-].*", 0), r"(\\d\\d)(\\d\\d)", "$1:$2")
    return F.concat(
        F.translate(F.substring(text, 1, 19), "t ", "TT"),
        F.when(fraction > "000000", F.concat(F.lit("."), fraction)).otherwise(""),
        F.when(zone.isin("z", "+00:00", "-00:00"), "Z").otherwise(zone),
    )''',
    "utc_text": '''def utc_text(time: Column) -> Column:
    """Write a time in UTC, with microseconds if there are any."""
    seconds = F.date_format(time, "yyyy-MM-dd'T'HH:mm:ss")
    return F.concat(seconds, F.replace(F.date_format(time, ".SSSSSS"), F.lit(".000000"), F.lit("")), F.lit("Z"))''',
    "is_date": '''def is_date(text: Column) -> Column:
    """Whether a text is a date."""
    return text.rlike(r"^(?!0000)\\d{4}-\\d\\d-\\d\\d$") & F.try_to_date(text).isNotNull()''',
    "is_decimal": '''def is_decimal(text: Column) -> Column:
    """Whether a text is a Decimal as Python writes it, without an exponent."""
    return text.rlike(r"^-?(0|[1-9]\\d*)(\\.\\d+)?$") & ~text.rlike(r"^-?0\\.0{6}")''',
    "checked": '''def checked(value: Column, holds: Predicate) -> Column:
    """Return a value that is to be written; one without a field that its type needs ends the query."""
    refusal = F.raise_error(F.concat(F.lit("this is no value of its type: "), F.to_json(value, TO_JSON)))
    return F.when(value.isNull() | holds(value), value).otherwise(refusal)''',
    "text": '''def text(column: Column) -> Column:
    """Decode UTF-8; other bytes give null."""
    return F.try_validate_utf8(column.cast("string"))''',
    "long": '''def long(column: Column) -> Column:
    """Decode an integer of 8 bytes, as Kafka's LongSerializer writes it; other bytes give null."""
    return F.when(F.length(column) == 8, F.conv(F.hex(column), 16, -10).cast("bigint"))''',
    "long_bytes": '''def long_bytes(number: Column) -> Column:
    """Encode an integer as 8 bytes, as Kafka's LongSerializer does."""
    return F.unhex(F.lpad(F.hex(number), 16, "0"))''',
    "boolean": '''def boolean(column: Column) -> Column:
    """Decode a truth value of one byte; other bytes give null."""
    return F.when(F.hex(column) == "01", True).when(F.hex(column) == "00", False)''',
    "boolean_bytes": '''def boolean_bytes(truth: Column) -> Column:
    """Encode a truth value as one byte."""
    return F.unhex(F.when(truth, "01").when(~truth, "00"))''',
    "PLAIN": """PLAIN = {
    "bigint": (int, pa.int64()),
    "double": (float, pa.float64()),
    "string": (str, pa.string()),
    "boolean": (bool, pa.bool_()),
    "binary": (bytes, pa.binary()),
}""",
    "fields": '''def fields(value: str, *names: str) -> Column:
    """Take just some fields of a value; of null, null."""
    return F.when(F.col(value).isNotNull(), F.struct(*(F.col(value)[name].alias(name) for name in names)))''',
    "truth_of": '''def truth_of(function: Callable) -> Callable:
    """Return a function that tells whether a result is true."""
    return lambda *arguments: bool(function(*arguments))''',
    "python": '''def python(function: Callable, kind: str, *arguments: Column) -> Column:
    """Call a Python function for each row; Arrow passes the columns that it reads."""
    return F.arrow_udf(lambda *columns: plain_array(results_of(function, columns), kind), kind)(*arguments)''',
    "python_struct": '''def python_struct(function: Callable, kinds: dict[str, str], *arguments: Column) -> Column:
    """Call a Python function that returns a tuple, or None; `kinds` are the fields of the struct."""

    def call(*columns: pa.Array) -> pa.Array:
        rows = results_of(function, columns)
        tuples = [(None,) * len(kinds) if row is None else row for row in rows]
        parts = zip(*tuples, strict=True) if tuples else [()] * len(kinds)
        arrays = [plain_array(part, kind) for part, kind in zip(parts, kinds.values(), strict=True)]
        is_null = pa.array([row is None for row in rows], pa.bool_())
        return pa.StructArray.from_arrays(arrays, names=list(kinds), mask=is_null)

    ddl = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
    return F.arrow_udf(call, f"struct<{ddl}>")(*arguments)''',
    "python_list": '''def python_list(function: Callable, kind: str, *arguments: Column) -> Column:
    """Call a Python function that returns any number of values."""

    def call(*columns: pa.Array) -> pa.Array:
        rows = list(map(list, results_of(function, columns)))
        items = plain_array([item for row in rows for item in row], kind)
        return pa.ListArray.from_arrays(list(accumulate(map(len, rows), initial=0)), items)

    return F.arrow_udf(call, f"array<{kind}>")(*arguments)''',
    "results_of": '''def results_of(function: Callable, columns: Sequence[pa.Array]) -> list:
    """Call a function for each row of some columns; a struct becomes an object with its fields."""
    return [function(*row) for row in zip(*(objects(column) for column in columns), strict=True)]''',
    "objects": '''def objects(column: pa.Array) -> list:
    """Return the values of a column."""
    if not pa.types.is_struct(column.type):
        return column.to_pylist()
    row = namedtuple("Row", [field.name for field in column.type])
    rows = map(row, *(field.to_pylist() for field in column.flatten()))
    are_there = column.is_valid().to_pylist()
    return [values if is_there else None for values, is_there in zip(rows, are_there, strict=True)]''',
    "plain_array": '''def plain_array(values: Sequence, kind: str) -> pa.Array:
    """Return values as Arrow; one of another class ends the query."""
    expected, arrow_type = PLAIN[kind]
    others = {type(value) for value in values} - {expected, type(None)}
    if others:
        raise TypeError(f"a Python function returned {others.pop().__name__} where {expected.__name__} is declared")
    return pa.array(values, arrow_type)''',
    "write": '''def write(rows: DataFrame, topic: str, mode: str, name: str | None = None) -> None:
    """Start the query that writes a topic; with `--once`, wait until it has read what the topics hold now."""
    records = rows.writeStream.format("kafka").options(**KAFKA).option("topic", topic).outputMode(mode)
    query = records.queryName(name or topic).option("checkpointLocation", f"{CHECKPOINT}/{name or topic}")
    if ONCE:
        query.trigger(availableNow=True).start().awaitTermination()
    else:
        query.start()''',
    "write_stateless": '''def write_stateless(rows: DataFrame, topic: str, name: str | None = None) -> None:
    """Start a query without state; Spark must not move its filters before the decoding, since it would decode twice."""
    package = "org.apache.spark.sql.catalyst.optimizer"
    rules = f"{package}.PushDownPredicates,{package}.PushPredicateThroughNonJoin"
    spark.conf.set("spark.sql.optimizer.excludedRules", rules)
    write(rows, topic, "append", name)
    spark.conf.unset("spark.sql.optimizer.excludedRules")''',
}


def used_by(body: str) -> list[str]:
    """Return the functions and constants that a text uses, and those that these use, in the order of `SOURCES`.

    Examples
    --------
    >>> used_by('F.to_json("value", TO_JSON)')
    ['TO_JSON']
    """
    used = set[str]()
    pending = [body]
    while pending:
        text = pending.pop()
        new = {name for name in SOURCES if name not in used and _uses(text, name)}
        used |= new
        pending.extend(SOURCES[name] for name in new)
    return [name for name in SOURCES if name in used]


def _uses(text: str, name: str) -> bool:
    """Return True if a text calls a function, or names a constant."""
    called = rf"(?<![\w.]){name}" + (r"\b" if name[0].isupper() else r"\(")
    return re.search(called, text) is not None
