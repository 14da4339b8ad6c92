"""Compilation of `.proto` files to FileDescriptorProtos with grpcio-tools."""

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
from kstreams.schemas.serialized_proto import clear_default_json_names

_TIMEOUT_S = 60


class NotCompiledError(RegistryError):
    """The error of a file that does not compile.

    Parameters
    ----------
    path : str
    compiler_message : str
    """

    def __init__(self, path: str, compiler_message: str) -> None:
        super().__init__(f"{path} does not compile: {compiler_message}")
        self.compiler_message = compiler_message


def compile_texts(
    texts: Mapping[str, str], path: str, imported: Iterable[FileDescriptorProto] = ()
) -> Sequence[FileDescriptorProto]:
    """Compile one of several texts. Return its imports, each file after its own imports, and the file itself last.

    Parameters
    ----------
    texts : mapping of str to str
        Files by their paths.
    path : str
        The path of the text to compile.
    imported : iterable of FileDescriptorProto
        Compiled imports that are neither among the texts nor known files. Each file stands after its own imports.

    Raises
    ------
    RegistryError
        If a path leads out of the folder, grpcio-tools is not installed, or the compiler refuses the text.
    """
    with TemporaryDirectory(prefix="kstreams-proto-") as folder:
        root = Path(folder).resolve()
        for name, text in texts.items():
            file = root / name
            if not file.resolve().is_relative_to(root):
                raise RegistryError(f"{name!r} is no path of an import: it leads out of the folder of the schema")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return compile_file(root, path, imported)


def compile_file(
    folder: Path, path: str, imported: Iterable[FileDescriptorProto] = ()
) -> Sequence[FileDescriptorProto]:
    """Compile a file of a folder. Return its imports, each file after its own imports, and the file itself last.

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
        imports.write_bytes(FileDescriptorSet(file=_with_confluent_files(imported)).SerializeToString())
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder.resolve()}", *_google_types_option()]
        options = [f"--descriptor_set_in={imports}", "--include_imports", f"--descriptor_set_out={result}", path]
        # The compiler runs in its own process, because it writes its messages to file descriptor 2.
        process = subprocess.run(
            [*command, *options], capture_output=True, text=True, check=False, cwd=working_folder, timeout=_TIMEOUT_S
        )
        if process.returncode:
            raise NotCompiledError(path, _message_in(process.stderr.replace(f"{folder}/", "")))
        files = FileDescriptorSet.FromString(result.read_bytes()).file
    for file in files:
        clear_default_json_names(file.message_type)
    return list(files)


def _message_in(output: str) -> str:
    """Return the errors in the output of the compiler, in one line."""
    lines = [line.strip() for line in output.splitlines() if ".proto" in line and "warning" not in line]
    return "; ".join(lines) or output.strip()[-300:] or "the compiler gave no reason"


def _with_confluent_files(imported: Iterable[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Return the imports, preceded by Confluent's files, which the compiler cannot find by itself."""
    files = list(imported)
    names = {file.name for file in files}
    return [*(file for file in confluent_files() if file.name not in names), *files]


def _google_types_option() -> list[str]:
    """Return the option with which the compiler finds installed files such as `google/type/date.proto`."""
    spec = find_spec("google.type") if find_spec("google") else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return [f"-I{Path(folder).parent.parent}" for folder in folders[:1]]
