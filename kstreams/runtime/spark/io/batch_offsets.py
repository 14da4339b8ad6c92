"""Where a micro-batch ends, as Spark wrote it into the checkpoint of its query."""

from __future__ import annotations

import json

from kstreams.errors import StateError
from kstreams.runtime.spark.exchange.rows import END, Offsets
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage

NO_OFFSET = "-"
"""What Spark writes for a source that has not read anything yet."""


def batch_end(storage: CheckpointStorage, query: str, batch_id: int) -> Offsets:
    """Where a batch of a streaming query ends, as Spark wrote it down before it ran the batch.

    Parameters
    ----------
    storage : CheckpointStorage
        Of the application.
    query : str
        The query's folder in it.

    Raises
    ------
    StateError
        When Spark's entry cannot be read.
    """
    name = f"{query}/offsets/{batch_id}"
    try:
        entry = storage.read(name).decode()
        sources = [json.loads(line) for line in entry.strip().splitlines()[2:] if line != NO_OFFSET]
    except (OSError, ValueError) as error:
        raise StateError(f"{storage.place(name)}, Spark's own record of the batch, cannot be read: {error}") from error
    return {topic: dict(of_topic) for source in sources for topic, of_topic in source.items() if topic != END}
