"""Tables as streaming DataFrames: Delta tables, their change data feeds, folders of Parquet files."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TableReader:
    """A growing table that the session of the run reads: `table(session)` is a streaming DataFrame.

    Parameters
    ----------
    format : str
        The format's name in Spark.
    path : str
    options : mapping of str to str
        The options of Spark's source.
    """

    format: str
    path: str
    options: dict[str, object] = field(default_factory=dict)

    def __call__(self, session: SparkSession) -> DataFrame:
        """Return the table as a streaming DataFrame."""
        reader = session.readStream.format(self.format).options(**self.options)
        if self.format != "delta":  # Delta tables store their schema
            reader = reader.schema(session.read.format(self.format).load(self.path).schema)
        return reader.load(self.path)


def delta(path: str, *, changes: bool = False, **options: object) -> TableReader:
    """Return a Delta table for `from_dataframe`: its rows, then the rows of each new version.

    Parameters
    ----------
    path : str
    changes : bool
        True to read its change data feed (`delta.enableChangeDataFeed`), which has updates and deletions too.
    **options
        Options of Delta's streaming source, such as `startingVersion` and `maxFilesPerTrigger`.
    """
    return TableReader("delta", path, {"readChangeFeed": str(changes).lower(), **options})


def parquet(path: str, **options: object) -> TableReader:
    """Return a folder of Parquet files for `from_dataframe`: the existing files, then new files.

    Parameters
    ----------
    path : str
    **options
        Options of Spark's file source, such as `maxFilesPerTrigger`.
    """
    return TableReader("parquet", path, options)
