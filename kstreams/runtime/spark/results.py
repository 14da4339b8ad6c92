"""`Results`: the topics of an application as DataFrames."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from kstreams.config import Config
from kstreams.errors import UnknownTopicError
from kstreams.log.naming import did_you_mean
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.io.open_homes import HomePlace
from kstreams.runtime.spark.io.source import register
from kstreams.runtime.spark.io.typed_rows import DELETED, Serdes, TypedRows, last_of_each_key, serdes_written


class Results:
    """What an application reads and writes.

    Parameters
    ----------
    session : SparkSession
        Reads it.
    topology : Topology
    config : Config
    prefix : str
        Stands before the names of the topics that it writes.
    """

    def __init__(self, session: SparkSession, topology: Topology, config: Config, prefix: str) -> None:
        self._session = session
        self._home = HomePlace.of(config)
        written = serdes_written(topology.sub_topologies)
        fed = {feed.topic: f"{config.application_id}-{feed.topic}" for feed in topology.feeds}
        internal = {topic.name for topic in topology.internal_topics}
        self._places: dict[str, tuple[str, Serdes]] = {
            topic: (fed.get(topic, topic), (source.key, source.value))
            for sub in topology.sub_topologies
            for source in sub.sources
            for topic in source.topics
        }
        self._places |= {topic: (prefix + topic, serdes) for topic, serdes in written.items()}
        self._places = {topic: place for topic, place in self._places.items() if topic not in internal}

    def of(self, topic: str, *, last_of_each_key: bool) -> DataFrame:
        """See `SparkRun.to_dataframe`."""
        if topic not in self._places:
            hint = did_you_mean(topic, self._places)
            raise UnknownTopicError(f"The topology neither writes nor reads a topic {topic!r}.{hint}")
        name, serdes = self._places[topic]
        register(self._session)
        reader = self._session.read.format("kstreams").option("path", self._home.address).option("topics", name)
        rows = reader.option("secretSettings", json.dumps(self._home.settings)).load()
        records = _table(rows) if last_of_each_key else rows
        return TypedRows(serdes).of(records).drop(DELETED)


def _table(rows: DataFrame) -> DataFrame:
    return last_of_each_key(rows, ("offset",)).where("value IS NOT NULL")
