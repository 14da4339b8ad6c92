"""Protobuf: values of topics as messages, framed as a schema registry's clients frame them."""

try:
    from kstreams.serdes.protobuf.serde import Protobuf
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "google":
        raise
    raise ImportError("ks.Protobuf needs protobuf: install it with `pip install 'kstreams-dsl[registry]'`") from error

__all__ = ["Protobuf"]
