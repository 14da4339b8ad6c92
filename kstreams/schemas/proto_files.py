"""Texts of `.proto` files as descriptors, by the compiler of grpcio-tools."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.missing import importing
from kstreams.schemas.references import ResolvedSchema
from kstreams.schemas.serialized_proto import deserialized, is_serialized, leave_out_json_names

with importing("Protobuf schemas"):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

MAIN = "schema.proto"
_TIMEOUT_S = 60


@functools.lru_cache(maxsize=1_000)
def file_of(schema: ResolvedSchema) -> FileDescriptorProto:
    """The descriptor of a `.proto` text, without those of its imports.

    Raises
    ------
    RegistryError
        With what the compiler says, or when it is not installed.

    Examples
    --------
    >>> text = 'syntax = "proto3"; message Order { int64 id = 1; }'
    >>> [message.name for message in file_of(ResolvedSchema(text, "PROTOBUF")).message_type]
    ['Order']
    """
    return next(each for each in files_of(schema).file if each.name == MAIN)


@functools.lru_cache(maxsize=1_000)
def files_of(schema: ResolvedSchema) -> FileDescriptorSet:
    """The descriptors of a `.proto` text, named `schema.proto`, after those of its imports.

    Of a file that comes as a FileDescriptorProto, the imports are left out.
    """
    if is_serialized(schema.text):
        return FileDescriptorSet(file=[deserialized(schema.text, MAIN)])
    _require_compiler()
    with tempfile.TemporaryDirectory(prefix="kstreams-proto-") as folder:
        root = Path(folder)
        texts = [pair for pair in schema.imports if not is_serialized(pair[1])]
        files = [deserialized(text, name) for name, text in schema.imports if is_serialized(text)]
        for name, text in (*texts, (MAIN, schema.text)):
            _write(root, name, text)
        (root / "imports").write_bytes(FileDescriptorSet(file=files).SerializeToString())
        target = root / "descriptors"
        _compile(root, target)
        return FileDescriptorSet.FromString(target.read_bytes())


def is_same_file(one: ResolvedSchema, other: ResolvedSchema) -> bool:
    """Whether two schemas are the same `.proto` file, of which one comes as a text and the other one does not."""
    if is_serialized(one.text) == is_serialized(other.text):
        return False
    files = [FileDescriptorProto.FromString(file_of(each).SerializeToString()) for each in (one, other)]
    for file in files:
        leave_out_json_names(file.message_type)
    return bool(files[0] == files[1])


def _require_compiler() -> None:
    with importing("Protobuf schemas", "protobuf"):
        import grpc_tools  # noqa: F401


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise RegistryError(f"{name!r} is no path of an import")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _compile(root: Path, target: Path) -> None:
    # In a process of its own: the compiler writes what is wrong to file descriptor 2, whoever that belongs to.
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{root}",
        "--include_imports",
        "--descriptor_set_in=imports",
    ]
    done = subprocess.run(
        [*command, f"--descriptor_set_out={target}", MAIN],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RegistryError(f"this is no Protobuf schema: {_complaint(done.stderr.replace(f'{root}/', ''))}")


def _complaint(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if ".proto" in line and "warning" not in line]
    return "; ".join(lines) or output.strip()[-300:] or "the compiler did not say why"
