"""An S3 server in this process, on loopback: moto's, one request at a time, so that conditions on a put hold."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from urllib.request import Request, urlopen


class S3Server(NamedTuple):
    """A server with a bucket."""

    endpoint: str
    bucket: str

    def location(self, folder: str, scheme: str = "s3") -> str:
        """A URI in the bucket."""
        return f"{scheme}://{self.bucket}/{folder}"

    @property
    def conf(self) -> Mapping[str, str]:
        """The settings with which Spark, and we, reach it."""
        s3a = "spark.hadoop.fs.s3a."
        return {
            f"{s3a}endpoint": self.endpoint,
            f"{s3a}endpoint.region": "us-east-1",
            f"{s3a}access.key": "test",
            f"{s3a}secret.key": "test",
            f"{s3a}path.style.access": "true",
        }


@contextmanager
def s3_server(bucket: str = "checkpoints") -> Iterator[S3Server]:
    """A server while the block runs."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app))
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        urlopen(Request(f"{endpoint}/{bucket}", method="PUT")).close()
        yield S3Server(endpoint, bucket)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
