"""Quix Streams' connectors: its CSV source, its file sink and its sink for PostgreSQL. `BENCH` is a JSON object."""

from begun import begun
from quixstreams import Application


def application(bench):
    return Application(
        bench["bootstrap"],
        consumer_group=bench["id"],
        auto_offset_reset="earliest",
        state_dir=bench["state"],
        loglevel="WARNING",
        auto_create_topics=False,
    )


def sink(bench):
    if bench["work"] == "parquet":
        from quixstreams.sinks.community.file.local import LocalFileSink

        return LocalFileSink(directory=bench["folder"], format="parquet")
    from quixstreams.sinks.community.postgresql import PostgreSQLSink

    return PostgreSQLSink(
        host="127.0.0.1",
        port=bench["port"],
        dbname="postgres",
        user="postgres",
        password="postgres",
        table_name=bench["table"],
        primary_key_columns=["id"],
        upsert_on_primary_key=True,
    )


def key(row):
    return row["id"]


if __name__ == "__main__":
    bench = begun()
    app = application(bench)
    if bench["work"] == "csv":
        from quixstreams.sources.core.csv import CSVSource

        topic = app.topic(bench["topic"], key_serializer="str", value_serializer="json")
        app.add_source(CSVSource(bench["csv"], name="csv", key_extractor=key), topic)
        app.run()
    else:
        topic = app.topic(bench["topic"], key_deserializer="str", value_deserializer="json")
        app.dataframe(topic).sink(sink(bench))
        app.run(count=bench["rows"], timeout=30, collect=False)
