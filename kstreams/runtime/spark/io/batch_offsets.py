"""Where a micro-batch ends, as Spark wrote it into the checkpoint of its query."""

from __future__ import annotations

import json

from pyarrow import fs

from kstreams.errors import StateError
from kstreams.runtime.spark.io.rows import END, Offsets

NO_OFFSET = "-"
"""What Spark writes for a source that has not read anything yet."""


def batch_end(checkpoint: str, batch_id: int) -> Offsets:
    """Where a batch of a streaming query ends, as Spark wrote it down before it ran the batch.

    Parameters
    ----------
    checkpoint : str
        The query's checkpoint location.

    Raises
    ------
    StateError
        When Spark's entry cannot be read.
    """
    filesystem, root = fs.FileSystem.from_uri(checkpoint)
    path = f"{root}/offsets/{batch_id}"
    try:
        with filesystem.open_input_file(path) as file:
            entry = bytes(file.read()).decode()
        sources = [json.loads(line) for line in entry.strip().splitlines()[2:] if line != NO_OFFSET]
    except (OSError, ValueError) as error:
        raise StateError(f"{path}, Spark's own record of the batch, cannot be read: {error}") from error
    return {topic: dict(of_topic) for source in sources for topic, of_topic in source.items() if topic != END}
