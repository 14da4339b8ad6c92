"""The Protobuf compiler: compiles `.proto` files to FileDescriptorProtos with grpcio-tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.incompatibility import importing
from kstreams.schemas.known_protos import confluent_files
from kstreams.schemas.serialized_proto import leave_out_json_names

_TIMEOUT_S = 60


class NotCompiledError(RegistryError):
    """The error of a file that does not compile.

    Parameters
    ----------
    path : str
    complaint : str
        The message of the compiler.
    """

    def __init__(self, path: str, complaint: str) -> None:
        super().__init__(f"{path} does not compile: {complaint}")
        self.complaint = complaint


def compiled_texts(
    texts: Mapping[str, str], path: str, imported: Iterable[FileDescriptorProto] = ()
) -> Sequence[FileDescriptorProto]:
    """Compile one of several texts; return it after its imports, each file after its own imports.

    Parameters
    ----------
    texts : mapping of str to str
        Files by their paths.
    path : str
        The path of the text to compile.
    imported : iterable of FileDescriptorProto
        Imports beside the texts and the known files, each file after its own imports.
    """
    with TemporaryDirectory(prefix="kstreams-proto-") as folder:
        root = Path(folder).resolve()
        for name, text in texts.items():
            file = root / name
            if not file.resolve().is_relative_to(root):
                raise RegistryError(f"{name!r} is no path of an import")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return compiled_file(root, path, imported)


def compiled_file(
    folder: Path, path: str, imported: Iterable[FileDescriptorProto] = ()
) -> Sequence[FileDescriptorProto]:
    """Compile a file of a folder; return it after its imports, each file after its own imports.

    Raises
    ------
    RegistryError
        If grpcio-tools is not installed, or the compiler refuses the file.
    """
    with importing("Protobuf schemas that are texts", "protobuf"):
        import grpc_tools  # noqa: F401
    with TemporaryDirectory() as working_folder:
        result = Path(working_folder, "result")
        imports = Path(working_folder, "imports")
        imports.write_bytes(FileDescriptorSet(file=_importable(imported)).SerializeToString())
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder.resolve()}", *_google_types()]
        options = [f"--descriptor_set_in={imports}", "--include_imports", f"--descriptor_set_out={result}", path]
        # In a process of its own, because the compiler writes its messages to file descriptor 2.
        process = subprocess.run(
            [*command, *options], capture_output=True, text=True, check=False, cwd=working_folder, timeout=_TIMEOUT_S
        )
        if process.returncode:
            raise NotCompiledError(path, _complaint(process.stderr.replace(f"{folder}/", "")))
        files = FileDescriptorSet.FromString(result.read_bytes()).file
    for file in files:
        leave_out_json_names(file.message_type)
    return list(files)


def _complaint(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if ".proto" in line and "warning" not in line]
    return "; ".join(lines) or output.strip()[-300:] or "the compiler did not say why"


def _importable(imported: Iterable[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Return the imports after Confluent's own files, which the compiler cannot find by itself."""
    files = list(imported)
    names = {file.name for file in files}
    return [*(file for file in confluent_files() if file.name not in names), *files]


def _google_types() -> list[str]:
    """Return the option by which the compiler finds installed files such as `google/type/date.proto`."""
    spec = find_spec("google.type") if find_spec("google") else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return [f"-I{Path(folder).parent.parent}" for folder in folders[:1]]
