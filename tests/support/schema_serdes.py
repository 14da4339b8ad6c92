"""Serdes of a schema registry bound to a topic without an application, and message classes as protoc generates them."""

from __future__ import annotations

import atexit
import base64
import functools
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka.schema_registry.confluent.type import decimal_pb2
from google.protobuf import (
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.type import date_pb2, timeofday_pb2

from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaRegistry
from kstreams.serdes.base import Serde, SerdeUse

S = TypeVar("S", bound=Serde[Any])


def local_registry(folder: Path) -> SchemaRegistry:
    """A registry in an embedded log, which takes schemas that do not go together."""
    registry = registry_of(Config.of({"schema.registry.url": "local:", "log.dir": folder}))
    registry.set_compatibility("NONE")
    return registry


@functools.cache
def registry_of_this_run() -> SchemaRegistry:
    """One registry for tests of many random values."""
    folder = tempfile.TemporaryDirectory(prefix="kstreams-registry-")
    atexit.register(folder.cleanup)
    return local_registry(Path(folder.name))


def bound(serde: S, registry: SchemaRegistry, topic: str = "orders", *, is_key: bool = False, **settings: Any) -> S:
    """The serde for the keys or values of a topic."""
    use = SerdeUse(topic, is_key, Config.of(settings), lambda: registry)
    return serde.of_topic(use)  # type: ignore[return-value]


KNOWN = (duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2, date_pb2, timeofday_pb2, decimal_pb2)


def message_class(schema: Schema | None, name: str) -> Any:
    """The class of a message in a schema whose text is a FileDescriptorProto, by protobuf alone."""
    assert schema is not None
    pool = descriptor_pool.DescriptorPool()
    for module in KNOWN:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(base64.b64decode(schema.text))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def generated_module(folder: Path, name: str) -> Any:
    """The module that protoc makes of `name.proto` in a folder."""
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--python_out={folder}", f"{name}.proto"]
    subprocess.run(command, check=True, capture_output=True)
    spec = importlib.util.spec_from_file_location(f"{name}_pb2", folder / f"{name}_pb2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
