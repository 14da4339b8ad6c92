"""Keys and values as Protobuf messages, with their schemas in a registry."""

from kstreams.serdes.immutable import is_immutable
from kstreams.serdes.registry import SerdeKind, add_kind

try:
    from kstreams.serdes.protobuf.serde import Protobuf
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "google":
        raise
    raise ImportError("ks.Protobuf needs protobuf: install it with `pip install 'kstreams-dsl[registry]'`") from error


def _is_immutable(serde: Protobuf) -> bool:
    return serde.type is not None and is_immutable(serde.type)


add_kind(SerdeKind(serde=Protobuf, name="protobuf", make=Protobuf, immutable=_is_immutable))

__all__ = ["Protobuf"]
