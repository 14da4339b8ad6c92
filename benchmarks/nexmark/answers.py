"""What each query must give: SQL of DuckDB over the same events, and the comparison with what was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from benchmarks.nexmark.generator import SIDE_ROWS, Events


@dataclass(frozen=True)
class Answer:
    """The answer of a query.

    Parameters
    ----------
    expected : str
        SQL over `person`, `auction`, `bid` and `side_input`.
    actual : str
        SQL over `result`, the values that the query wrote, for the same columns.
    schema : str
        The type of a value of `result`, in DuckDB's words.
    is_table : bool
        True if the query writes changes: the last value of each key counts.
    strays : str
        Where several rows may stand in one place: SQL for the rows of `result` that may not.
    """

    expected: str
    schema: str
    actual: str = "select * from result"
    is_table: bool = False
    strays: str = ""


PERSON = (
    "id bigint, name varchar, emailAddress varchar, creditCard varchar, city varchar, state varchar, "
    "dateTime bigint, extra varchar"
)
AUCTION = (
    "id bigint, itemName varchar, description varchar, initialBid bigint, reserve bigint, dateTime bigint, "
    "expires bigint, seller bigint, category bigint, extra varchar"
)
BID = "auction bigint, bidder bigint, price bigint, channel varchar, url varchar, dateTime bigint, extra varchar"
OFFER = f"struct(auction struct({AUCTION}), bid struct({BID}))"
DAY = 24 * 60 * 60 * 1000

OFFERS = """
    select a, b, row_number() over (partition by a.id order by b.price desc, b.dateTime) as place
    from auction a join bid b on a.id = b.auction and b.dateTime between a.dateTime and a.expires
"""
RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}
COUNTS = ", ".join(f"count(*) filter (where {where}) as {rank}_bids" for rank, where in RANKS.items())
DISTINCT = ", ".join(
    f"count(distinct {field}) filter (where {where}) as {rank}_{field}s"
    for field in ("bidder", "auction")
    for rank, where in RANKS.items()
)
COUNTS_TYPE = ", ".join(f"{rank}_bids bigint" for rank in RANKS)
DISTINCT_TYPE = ", ".join(f"{rank}_{field}s bigint" for field in ("bidder", "auction") for rank in RANKS)
BIDS_OF_RESULT = "select unnest(value) as bid from result"

ANSWERS: dict[str, Answer] = {
    "q0": Answer(
        "select auction, bidder, price, dateTime, extra from bid",
        "struct(auction bigint, bidder bigint, price bigint, dateTime bigint, extra varchar)",
    ),
    "q1": Answer(
        "select auction, bidder, price * 0.908::double as price, dateTime, extra from bid",
        "struct(auction bigint, bidder bigint, price double, dateTime bigint, extra varchar)",
    ),
    "q2": Answer("select auction, price from bid where auction % 123 = 0", "struct(auction bigint, price bigint)"),
    "q3": Answer(
        """select a.id, name, city, state from auction a join person p on a.seller = p.id
           where category = 10 and state in ('OR', 'ID', 'CA')""",
        "struct(id bigint, name varchar, city varchar, state varchar)",
        is_table=True,
    ),
    "q4": Answer(
        f"select a.category, avg(b.price) as final from ({OFFERS}) where place = 1 group by a.category",
        "struct(category bigint, final double)",
        is_table=True,
    ),
    "q5": Answer(
        """with counts as (
             select auction, start, count(*) as num
             from (select auction, unnest(range(dateTime // 2000 * 2000 - 8000, dateTime + 1, 2000)) as start from bid)
             group by auction, start)
           select auction, num from counts
           qualify num = max(num) over (partition by start)""",
        "struct(num bigint, auctions bigint[])",
        "select unnest(auctions) as auction, num from result",
        is_table=True,
    ),
    "q6": Answer(
        f"""select seller, avg(price) as price from (
              select a.seller, b.price,
                row_number() over (partition by a.seller order by b.dateTime desc, a.id desc) as n
              from ({OFFERS}) where place = 1)
            where n <= 10 group by seller""",
        "struct(seller bigint, price double)",
        is_table=True,
    ),
    "q7": Answer(
        """select auction, price, bidder, dateTime, extra from bid
           qualify price = max(price) over (partition by dateTime // 10000)""",
        f"struct({BID})[]",
        f"select bid.auction, bid.price, bid.bidder, bid.dateTime, bid.extra from ({BIDS_OF_RESULT})",
        is_table=True,
    ),
    "q8": Answer(
        """select distinct p.id, p.name, p.dateTime // 10000 * 10000 as starttime from person p join auction a
           on p.id = a.seller and p.dateTime // 10000 = a.dateTime // 10000""",
        "struct(id bigint, name varchar, starttime bigint)",
        is_table=True,
    ),
    "q9": Answer(
        f"select a.*, b.price as bid_price, b.dateTime as bid_time from ({OFFERS}) where place = 1",
        OFFER,
        "select auction.*, bid.price, bid.dateTime from result",
        is_table=True,
        strays="select bid from result where bid not in (select bid from bid)",
    ),
    "q10": Answer("select * from bid", f"struct({BID})"),
    "q11": Answer(
        """with numbered as (
             select bidder, dateTime, count(*) filter (where is_first)
                 over (partition by bidder order by dateTime rows unbounded preceding) as session
             from (select bidder, dateTime, coalesce(dateTime - lag(dateTime)
                 over (partition by bidder order by dateTime) > 10000, true) as is_first from bid))
           select bidder, count(*) as bid_count, min(dateTime) as starttime, max(dateTime) as endtime
           from numbered group by bidder, session""",
        "struct(bidder bigint, bid_count bigint, starttime bigint, endtime bigint)",
        is_table=True,
    ),
    "q12": Answer(
        "select bidder, count(*) as bid_count from bid group by bidder",
        "struct(bidder bigint, bid_count bigint)",
        "select bidder, sum(bid_count)::bigint as bid_count from result group by bidder",
        is_table=True,
    ),
    "q13": Answer(
        "select auction, bidder, price, dateTime, value from bid join side_input on auction % 10000 = key",
        "struct(auction bigint, bidder bigint, price bigint, dateTime bigint, value varchar)",
    ),
    "q14": Answer(
        f"""select auction, bidder, price * 0.908::double as price,
             case when hour between 8 and 18 then 'dayTime' when hour <= 6 or hour >= 20 then 'nightTime'
                  else 'otherTime' end as bidTimeType,
             dateTime, extra, length(extra) - length(replace(extra, 'c', '')) as c_counts
           from (select *, dateTime % {DAY} // 3600000 as hour from bid)
           where price * 0.908::double > 1000000 and price * 0.908::double < 50000000""",
        """struct(auction bigint, bidder bigint, price double, bidTimeType varchar, dateTime bigint, extra varchar,
           c_counts bigint)""",
    ),
    "q15": Answer(
        f"select {COUNTS}, {DISTINCT} from bid group by dateTime // {DAY}",
        f"struct({COUNTS_TYPE}, {DISTINCT_TYPE})",
        is_table=True,
    ),
    "q16": Answer(
        f"""select channel, max(dateTime % {DAY} // 60000) as minute, {COUNTS}, {DISTINCT} from bid
            group by channel, dateTime // {DAY}""",
        f"struct(channel varchar, minute bigint, {COUNTS_TYPE}, {DISTINCT_TYPE})",
        is_table=True,
    ),
    "q17": Answer(
        f"""select auction, {COUNTS}, min(price) as min_price, max(price) as max_price, avg(price) as avg_price,
             sum(price)::bigint as sum_price
            from bid group by auction, dateTime // {DAY}""",
        f"""struct(auction bigint, {COUNTS_TYPE}, min_price bigint, max_price bigint, avg_price double,
            sum_price bigint)""",
        is_table=True,
    ),
    "q18": Answer(
        "select auction, bidder, max(dateTime) as dateTime from bid group by auction, bidder",
        f"struct({BID})",
        "select auction, bidder, dateTime from result",
        is_table=True,
        strays="select * from result except select * from bid",
    ),
    "q19": Answer(
        """select auction, price from bid
           qualify row_number() over (partition by auction order by price desc) <= 10""",
        f"struct({BID})[]",
        f"select bid.auction, bid.price from ({BIDS_OF_RESULT})",
        is_table=True,
        strays=f"select unnest(bid) from ({BIDS_OF_RESULT}) except all select * from bid",
    ),
    "q20": Answer(
        "select a as auction, b as bid from auction a join bid b on a.id = b.auction where category = 10", OFFER
    ),
    "q21": Answer(
        """select auction, bidder, price, channel, coalesce(
             case lower(channel) when 'apple' then '0' when 'google' then '1' when 'facebook' then '2'
                  when 'baidu' then '3' end,
             nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')) as channel_id
           from bid where channel_id is not null""",
        "struct(auction bigint, bidder bigint, price bigint, channel varchar, channel_id varchar)",
    ),
    "q22": Answer(
        """select auction, bidder, price, channel, split_part(url, '/', 4) as dir1, split_part(url, '/', 5) as dir2,
             split_part(url, '/', 6) as dir3 from bid""",
        """struct(auction bigint, bidder bigint, price bigint, channel varchar, dir1 varchar, dir2 varchar,
           dir3 varchar)""",
    ),
    "q23": Answer(
        """select b as bid, p as person, a as auction from bid b
           join person p on p.id = b.bidder join auction a on a.seller = b.bidder""",
        f"struct(bid struct({BID}), person struct({PERSON}), auction struct({AUCTION}))",
    ),
}


class Verifier:
    """Compares what queries wrote with the answers over the same events.

    Parameters
    ----------
    events : Events
    """

    def __init__(self, events: Events) -> None:
        self._duckdb = duckdb.connect()
        for name in ("person", "auction", "bid"):
            self._duckdb.register(f"{name}_events", getattr(events, name))
            self._duckdb.execute(f"create table {name} as from {name}_events")
        self._duckdb.execute(
            f"create table side_input as select range as key, range::varchar as value from range({SIDE_ROWS})"
        )

    def differences(self, query: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> list[str]:
        """Return what is wrong with the records of a topic, in the order of each key. No difference: an empty list."""
        answer = ANSWERS[query]
        values = list(dict(records).values()) if answer.is_table else [value for _, value in records]
        return self._differences(answer, [value for value in values if value is not None])

    def _differences(self, answer: Answer, values: list[bytes]) -> list[str]:
        texts = pa.table({"text": pa.array(values, pa.binary()).cast(pa.string())})
        self._duckdb.register("texts", texts)
        value = f"text::json::{answer.schema}"
        columns = f"{value} as value" if answer.schema.endswith("[]") else f"unnest({value})"
        self._duckdb.execute(f"create or replace temp table result as select {columns} from texts")
        self._duckdb.execute(f"create or replace temp table actual as {answer.actual}")
        self._duckdb.execute(f"create or replace temp table expected as {answer.expected}")
        missing = self._rows("from expected except all from actual")
        wrong = self._rows("from actual except all from expected")
        stray = self._rows(answer.strays) if answer.strays else []
        return [
            f"{what}: {row}"
            for what, rows in (("missing", missing), ("wrong", wrong), ("stray", stray))
            for row in rows
        ]

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        return self._duckdb.execute(f"from ({query}) limit 5").fetchall()
