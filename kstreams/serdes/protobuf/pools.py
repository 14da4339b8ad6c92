"""Descriptor pools: the files of one schema with its references, and of the known ones those that they import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from kstreams.errors import RegistryError, SerdeError
from kstreams.schemas.known_protos import known_file


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """A pool of files, with those that they import of the known ones.

    Parameters
    ----------
    files : iterable of FileDescriptorProto
        Each behind those that it imports.

    Raises
    ------
    SerdeError
        When they do not fit together.
    """
    pool = DescriptorPool()
    added: set[str] = set()
    for file in files:
        for each in (*_known_imports(file), file):
            if each.name not in added:
                added.add(each.name)
                _add(pool, each)
    return pool


def _known_imports(file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
    """The known files that a file imports, each behind those that it imports itself."""
    for path in file.dependency:
        imported = _known_file(path)
        if imported is not None:
            yield from _known_imports(imported)
            yield imported


def _known_file(path: str) -> FileDescriptorProto | None:
    try:
        return known_file(path)
    except RegistryError as error:
        raise SerdeError(str(error)) from error


def _add(pool: DescriptorPool, file: FileDescriptorProto) -> None:
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
        raise SerdeError(f"{file.name} is no valid .proto file: {reason}") from error
