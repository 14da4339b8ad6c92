"""The Protobuf compiler: `.proto` files as FileDescriptorProtos, by grpcio-tools."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from kstreams.errors import SerdeError
from kstreams.schemas.serialized_proto import leave_out_json_names
from kstreams.serdes.protobuf.pools import known_file

_IMPORT = re.compile(r"""^\s*import\s+(?:public\s+|weak\s+)?["']([^"']+)["']""", re.MULTILINE)


def imports_of(text: str) -> list[str]:
    """The paths that a `.proto` file imports.

    Examples
    --------
    >>> imports_of('syntax = "proto3"; import "acme/customer.proto"; ')
    []
    >>> imports_of('import "acme/customer.proto";')
    ['acme/customer.proto']
    """
    return _IMPORT.findall(text)


def compiled_text(path: str, text: str, imported: Iterable[FileDescriptorProto] = ()) -> FileDescriptorProto:
    """The file of a text.

    Parameters
    ----------
    path : str
        What the file is called.
    text : str
    imported : iterable of FileDescriptorProto
        What it imports beside Protobuf's own files, each behind those that it imports.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return compiled_file(Path(folder), path, imported)[-1]


def compiled_file(
    folder: Path, path: str, imported: Iterable[FileDescriptorProto] = ()
) -> Sequence[FileDescriptorProto]:
    """A file of a folder with what it imports, each behind those that it imports.

    Raises
    ------
    SerdeError
        When grpcio-tools is not installed, or the compiler refuses the file.
    """
    if find_spec("grpc_tools") is None:
        raise SerdeError(
            f"{path} is compiled with grpcio-tools, which is not installed: pip install 'kstreams-dsl[protobuf]', or "
            "give ks.Protobuf a message class that protoc generated"
        )
    with TemporaryDirectory() as working_folder:
        result = Path(working_folder, "result")
        imports = Path(working_folder, "imports")
        imports.write_bytes(FileDescriptorSet(file=_with_decimal(imported)).SerializeToString())
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", *_google_types()]
        options = [f"--descriptor_set_in={imports}", "--include_imports", f"--descriptor_set_out={result}", path]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=working_folder)
        if done.returncode:
            raise SerdeError(f"{path} does not compile: {done.stderr.strip() or done.stdout.strip()}")
        files = FileDescriptorSet.FromString(result.read_bytes()).file
    for file in files:
        leave_out_json_names(file.message_type)
    return list(files)


def _with_decimal(imported: Iterable[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Confluent's decimal has no file that the compiler could find."""
    decimal = known_file("confluent/type/decimal.proto")
    assert decimal is not None
    return [decimal, *(file for file in imported if file.name != decimal.name)]


def _google_types() -> list[str]:
    """The option that has the compiler find `google/type/date.proto` and the like, where they are installed."""
    spec = find_spec("google.type") if find_spec("google") else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return [f"-I{Path(folder).parent.parent}" for folder in folders[:1]]
