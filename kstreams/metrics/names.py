"""What a metric is called outside: as JMX exporters name those of Kafka Streams."""

from kstreams.runtime.metrics.catalogue import MetricName


def exported_name(group: str, name: str) -> str:
    """The name of a metric, without its tags.

    Examples
    --------
    >>> exported_name("stream-thread-metrics", "process-total")
    'kafka_streams_stream_thread_metrics_process_total'
    """
    return f"kafka_streams_{group}_{name}".replace("-", "_").replace(".", "_")


def labels_of(name: MetricName) -> dict[str, str]:
    """Its tags, under names that may be labels.

    Examples
    --------
    >>> labels_of(MetricName("stream-thread-metrics", "process-total", (("thread-id", "app-StreamThread-1"),)))
    {'thread_id': 'app-StreamThread-1'}
    """
    return {tag.replace("-", "_"): value for tag, value in name.tags}
