"""A query of Nexmark by hand on PySpark, with Spark's own source and sink for Kafka: see kstreams_program.py.

Its argument is the jars of the source and sink. systems.py says why some queries are missing. Its sink writes at least
once.
"""

from __future__ import annotations

import os
import sys
import threading

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQueryListener

PERSON = (
    "id bigint, name string, emailAddress string, creditCard string, city string, state string, dateTime bigint, "
    "extra string"
)
AUCTION = (
    "id bigint, itemName string, description string, initialBid bigint, reserve bigint, dateTime bigint, "
    "expires bigint, seller bigint, category bigint, extra string"
)
BID = "auction bigint, bidder bigint, price bigint, channel string, url string, dateTime bigint, extra string"
EVENT = f"event_type int, person struct<{PERSON}>, auction struct<{AUCTION}>, bid struct<{BID}>"
DAY_MS = 24 * 60 * 60 * 1000
KINDS = ("person", "auction", "bid")


class Nexmark:
    """The streams of Nexmark, and the queries as methods that return a frame with `key` and `value`, and its mode.

    Parameters
    ----------
    session : SparkSession
    bootstrap : str
    batch : int
        The events of a micro-batch.
    """

    def __init__(self, session: SparkSession, bootstrap: str, batch: int) -> None:
        self._session = session
        self._bootstrap = bootstrap
        self._batch = batch

    def stream(self, kind: str) -> DataFrame:
        """Return the persons, auctions or bids."""
        reader = self._session.readStream.format("kafka").option("kafka.bootstrap.servers", self._bootstrap)
        reader = reader.option("subscribe", "nexmark").option("startingOffsets", "earliest")
        events = reader.option("maxOffsetsPerTrigger", self._batch).load()
        event = F.from_json(F.col("value").cast("string"), EVENT).alias("event")
        return events.select(event).where(F.col("event.event_type") == KINDS.index(kind)).select(f"event.{kind}.*")

    def side_input(self) -> DataFrame:
        """Return the rows of the side input."""
        reader = self._session.read.format("kafka").option("kafka.bootstrap.servers", self._bootstrap)
        rows = reader.option("subscribe", "nexmark-side-input").load()
        number = F.conv(F.hex("key"), 16, 10).cast("bigint").alias("name")
        return rows.select(number, F.col("value").cast("string").alias("value")).cache()

    def q0(self) -> tuple[DataFrame, str]:
        return as_json(self.stream("bid").select("auction", "bidder", "price", "dateTime", "extra")), "append"

    def q1(self) -> tuple[DataFrame, str]:
        price = (F.col("price") * F.lit(0.908)).alias("price")
        return as_json(self.stream("bid").select("auction", "bidder", price, "dateTime", "extra")), "append"

    def q2(self) -> tuple[DataFrame, str]:
        return as_json(self.stream("bid").where("auction % 123 = 0").select("auction", "price")), "append"

    def q3(self) -> tuple[DataFrame, str]:
        auctions = self.stream("auction").where("category = 10").select(F.col("id").alias("item"), "seller")
        persons = self.stream("person").where("state in ('OR', 'ID', 'CA')")
        joined = auctions.join(persons, F.expr("seller = id"))
        return as_json(joined.select(F.col("item").alias("id"), "name", "city", "state"), "id"), "append"

    def q8(self) -> tuple[DataFrame, str]:
        ten_seconds = F.expr("dateTime div 10000 * 10000")
        persons = self.stream("person").select("id", "name", ten_seconds.alias("starttime"))
        auctions = self.stream("auction").select("seller", ten_seconds.alias("start"))
        joined = persons.join(auctions, F.expr("id = seller and starttime = start"))
        return as_json(joined.select("id", "name", "starttime"), "id", "starttime"), "append"

    def q12(self) -> tuple[DataFrame, str]:
        counted = self.stream("bid").withColumn("now", F.current_timestamp())
        counts = counted.groupBy("bidder", F.window("now", "10 seconds")).agg(F.count("*").alias("bid_count"))
        start = F.unix_millis("window.start").alias("start")
        return as_json(counts.select("bidder", "bid_count", start), "bidder", "start"), "update"

    def q13(self) -> tuple[DataFrame, str]:
        joined = self.stream("bid").join(F.broadcast(self.side_input()), F.expr("auction % 10000 = name"))
        return as_json(joined.select("auction", "bidder", "price", "dateTime", "value")), "append"

    def q14(self) -> tuple[DataFrame, str]:
        hour = F.expr(f"dateTime % {DAY_MS} div 3600000")
        kind = F.when(hour.between(8, 18), "dayTime").when((hour <= 6) | (hour >= 20), "nightTime")
        price = F.col("price") * F.lit(0.908)
        letters = F.length("extra") - F.length(F.replace("extra", F.lit("c"), F.lit("")))
        chosen = self.stream("bid").where((price > 1_000_000) & (price < 50_000_000))
        fields = [price.alias("price"), kind.otherwise("otherTime").alias("bidTimeType"), letters.alias("c_counts")]
        return as_json(chosen.select("auction", "bidder", *fields, "dateTime", "extra")), "append"

    def q15(self) -> tuple[DataFrame, str]:
        day = F.expr(f"dateTime div {DAY_MS}").alias("day")
        return as_json(self.stream("bid").groupBy(day).agg(*bids_of_ranks(), *distinct_of_ranks()), "day"), "update"

    def q16(self) -> tuple[DataFrame, str]:
        groups = self.stream("bid").groupBy("channel", F.expr(f"dateTime div {DAY_MS}").alias("day"))
        minute = F.expr(f"max(dateTime % {DAY_MS} div 60000) as minute")
        statistics = groups.agg(minute, *bids_of_ranks(), *distinct_of_ranks())
        return as_json(statistics, "channel", "day"), "update"

    def q17(self) -> tuple[DataFrame, str]:
        prices = ["min(price) as min_price", "max(price) as max_price", "avg(price) as avg_price"]
        groups = self.stream("bid").groupBy("auction", F.expr(f"dateTime div {DAY_MS}").alias("day"))
        statistics = groups.agg(*bids_of_ranks(), *map(F.expr, [*prices, "sum(price) as sum_price"]))
        return as_json(statistics, "auction", "day"), "update"

    def q18(self) -> tuple[DataFrame, str]:
        last = F.max_by(F.struct("*"), "dateTime").alias("bid")
        return as_json(
            self.stream("bid").groupBy("auction", "bidder").agg(last).select("bid.*"), "auction", "bidder"
        ), ("update")

    def q19(self) -> tuple[DataFrame, str]:
        ranked = F.sort_array(F.collect_list(F.struct("price", F.struct("*").alias("bid"))), asc=False)
        best = self.stream("bid").groupBy("auction").agg(F.slice(ranked, 1, 10)["bid"].alias("bids"))
        key = F.col("auction").cast("string").alias("key")
        return best.select(key, F.to_json("bids").alias("value")), "update"

    def q20(self) -> tuple[DataFrame, str]:
        auctions = self.stream("auction").where("category = 10").select("id", F.struct("*").alias("offered"))
        bids = self.stream("bid").select(F.col("auction").alias("on"), F.struct("*").alias("bid"))
        joined = bids.join(auctions, F.expr("`on` = id"))
        return as_json(joined.select(F.col("offered").alias("auction"), "bid")), "append"

    def q21(self) -> tuple[DataFrame, str]:
        lower = F.lower("channel")
        ids = F.when(lower == "apple", "0").when(lower == "google", "1").when(lower == "facebook", "2")
        match = F.regexp_extract("url", "[&^]channel_id=([^&]*)", 1)
        number = ids.when(lower == "baidu", "3").otherwise(match).alias("channel_id")
        rows = self.stream("bid").select("auction", "bidder", "price", "channel", number).where("channel_id != ''")
        return as_json(rows), "append"

    def q22(self) -> tuple[DataFrame, str]:
        parts = F.split("url", "/")
        folders = [parts[place + 2].alias(f"dir{place}") for place in (1, 2, 3)]
        return as_json(self.stream("bid").select("auction", "bidder", "price", "channel", *folders)), "append"


RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}


def bids_of_ranks() -> list[Column]:
    """Return how many bids there are, of all and of each rank of prices."""
    return [F.count_if(F.expr(condition)).alias(f"{rank}_bids") for rank, condition in RANKS.items()]


def distinct_of_ranks() -> list[Column]:
    """Return how many bidders and auctions there are: a streaming query has no `count(distinct)`."""
    return [
        F.size(F.collect_set(F.when(F.expr(condition), F.col(field)))).alias(f"{rank}_{field}s")
        for field in ("bidder", "auction")
        for rank, condition in RANKS.items()
    ]


def as_json(rows: DataFrame, *key: str) -> DataFrame:
    """Return rows as `value`, in JSON, and some of their columns as `key`."""
    value = F.to_json(F.struct("*")).alias("value")
    return rows.select(F.to_json(F.struct(*key)).alias("key"), value) if key else rows.select(value)


class Half(StreamingQueryListener):
    """Prints `half` when half of the events are read, of one source."""

    def __init__(self, half: int) -> None:
        self._missing = half

    def onQueryStarted(self, event: object) -> None:
        """Ignore the start."""

    def onQueryProgress(self, event: object) -> None:
        """Count the rows of a micro-batch."""
        before = self._missing
        self._missing -= event.progress.sources[0].numInputRows
        if before > 0 >= self._missing:
            print("half", flush=True)

    def onQueryTerminated(self, event: object) -> None:
        """Ignore the end."""


def main() -> None:
    """Run the query until the process is ended."""
    state = os.environ["STATE"]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[1])
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        "spark.local.dir": state,
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    events = int(os.environ["EVENTS"])
    session.streams.addListener(Half(events // 2))
    query = os.environ["QUERY"]
    nexmark = Nexmark(session, os.environ["BOOTSTRAP"], max(events // 8, 1))
    rows, mode = getattr(nexmark, query)()
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", os.environ["BOOTSTRAP"])
    writer = writer.option("topic", query).option("checkpointLocation", f"{state}/checkpoint").outputMode(mode)
    writer.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
