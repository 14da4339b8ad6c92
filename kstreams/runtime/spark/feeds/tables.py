"""Tables as DataFrames of the session that runs: Delta tables, their change data feeds, folders of Parquet files."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TableReader:
    """A table that grows, read when a session is there: `table(session)` is a streaming DataFrame.

    Parameters
    ----------
    format : str
        Spark's name of it.
    path : str
    options : mapping of str to str
        Spark's own.
    """

    format: str
    path: str
    options: dict[str, object] = field(default_factory=dict)

    def __call__(self, session: SparkSession) -> DataFrame:
        """The table as a stream."""
        reader = session.readStream.format(self.format).options(**self.options)
        if self.format != "delta":  # Delta tables know their columns
            reader = reader.schema(session.read.format(self.format).load(self.path).schema)
        return reader.load(self.path)


def delta(path: str, *, changes: bool = False, **options: object) -> TableReader:
    """A Delta table for `from_dataframe`: what it holds, then what is appended, version by version.

    Parameters
    ----------
    path : str
    changes : bool
        Read its change data feed instead (`delta.enableChangeDataFeed`): updates and deletions too.
    **options
        Of Delta's streaming source, such as `startingVersion` and `maxFilesPerTrigger`.
    """
    return TableReader("delta", path, {"readChangeFeed": str(changes).lower(), **options})


def parquet(path: str, **options: object) -> TableReader:
    """A folder of Parquet files for `from_dataframe`: the files that are there, then those that are added.

    Parameters
    ----------
    path : str
    **options
        Of Spark's file source, such as `maxFilesPerTrigger`.
    """
    return TableReader("parquet", path, options)
