"""The files of an import, on a disk that all workers share or in an S3 bucket."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.fs as fs

from .gateway import Json

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "arrows": (".arrows",),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "jsonl": (".jsonl", ".ndjson"),
}
"""Endings by which the files of a format are found in a folder."""

TABLE_FOLDERS = ("_delta_log", "metadata", ".hoodie")
"""Folders in which tables of Delta, Iceberg and Hudi say which of their files count."""

TABLE_MARK = re.compile(r"/(_delta_log|\.hoodie)/|/metadata/[^/]*\.metadata\.json$")
"""Paths of files that say so."""


@dataclass(frozen=True)
class SourceFile:
    """A file that is imported."""

    path: str
    size: int
    modified: int | None = None
    """When it was written, in nanoseconds on a disk and in whole seconds in a bucket."""


@dataclass(frozen=True)
class Source:
    """A file, a folder or a pattern with `*`, below a location that the gateway allows."""

    pattern: str
    within: str
    format: str
    storage_options: dict[str, str]

    def open(self) -> fs.FileSystem:
        """Opens the file system of the source."""
        if not self.pattern.startswith("s3://"):
            return fs.LocalFileSystem()
        return fs.S3FileSystem(**s3_options(self.storage_options))

    def files(self) -> list[SourceFile]:
        """Returns the files in the order of their names. Those whose path has a part that begins with a dot or an underscore are left out."""
        system, path = self.open(), self._path(self.pattern)
        folder, pattern = split(path)
        if pattern is None:
            [info] = system.get_file_info([path])
            if info.type == fs.FileType.File:
                self._check_places(system, os.path.dirname(info.path), [info.path])
                return [self._file(system, info)]
            folder, pattern = path.rstrip("/"), re.compile(r".*")
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        infos = [info for info in system.get_file_info(selector) if info.type == fs.FileType.File]
        found = [info for info in infos if self._is_meant(info.path[len(folder) + 1 :], pattern)]
        if not found:
            raise ValueError(f"{self.pattern} has no files of the format {self.format}")
        marks = [info for info in infos if TABLE_MARK.search(info.path)]
        self._check_places(system, folder, [info.path for info in [*marks, *found]])
        files = [self._file(system, info) for info in sorted(found, key=lambda info: info.path)]
        check_once(system, files)
        return files

    def _check_places(self, system: fs.FileSystem, folder: str, paths: list[str]) -> None:
        """Refuses files whose folders say more than the files: a value of a column, or which of the files count."""
        within = self._path(self.within).rstrip("/")
        for path in paths:
            below = path[len(within) + 1 :]
            if TABLE_MARK.search(f"/{below}"):
                raise ValueError(f"{path} belongs to a table of Delta, Iceberg or Hudi, which says which of its files count")
            for part in below.split("/")[:-1]:
                if "=" in part:
                    raise ValueError(f"{path}: the folder {part} has a column that the file lacks, and is not read")
        while len(folder) >= len(within):
            places = system.get_file_info([f"{folder}/{name}" for name in TABLE_FOLDERS])
            for place in [place for place in places if place.type == fs.FileType.Directory]:
                infos = system.get_file_info(fs.FileSelector(place.path, allow_not_found=True))
                if any(TABLE_MARK.search(info.path) for info in infos):
                    raise ValueError(f"{self.pattern} is in a table of Delta, Iceberg or Hudi, which says which of its files count")
            folder = os.path.dirname(folder)

    def _is_meant(self, name: str, pattern: re.Pattern[str]) -> bool:
        is_hidden = any(part.startswith((".", "_")) for part in name.split("/"))
        is_whole = pattern.pattern != ".*" or name.lower().endswith(ENDINGS[self.format])
        return not is_hidden and is_whole and pattern.fullmatch(name) is not None

    def _file(self, system: fs.FileSystem, info: fs.FileInfo) -> SourceFile:
        """Checks that no symbolic link leads out of the location."""
        if isinstance(system, fs.LocalFileSystem):
            real, within = os.path.realpath(info.path), os.path.realpath(self.within)
            if os.path.commonpath([real, within]) != within:
                raise ValueError(f"{info.path} leads out of {self.within}")
        return SourceFile(info.path, info.size, modified_in(system, info))

    def _path(self, uri: str) -> str:
        return uri.removeprefix("s3://")


def modified_in(system: fs.FileSystem, info: fs.FileInfo) -> int | None:
    """Returns when a file was written. Listings of a bucket have fractions of seconds that other answers lack."""
    is_local = isinstance(system, fs.LocalFileSystem)
    return info.mtime_ns if is_local or info.mtime_ns is None else info.mtime_ns // 1_000_000_000


@contextmanager
def unless_changed(system: fs.FileSystem, file: SourceFile) -> Iterator[None]:
    """Refuses a file that was changed between its listing and the end of its rows: they may be a part of it, or of two files."""
    try:
        yield
    except Exception:
        check_unchanged(system, file)
        raise
    check_unchanged(system, file)


def check_unchanged(system: fs.FileSystem, file: SourceFile) -> None:
    """Refuses a file that is not as it was listed."""
    [info] = system.get_file_info([file.path])
    if (info.size, modified_in(system, info)) != (file.size, file.modified):
        raise ValueError(f"{file.path} was changed while it was imported; import a copy of it") from None


def check_once(system: fs.FileSystem, files: list[SourceFile]) -> None:
    """Refuses links to a file that is imported under another name, too."""
    names: dict[str, str] = {}
    for file in files if isinstance(system, fs.LocalFileSystem) else []:
        other = names.setdefault(os.path.realpath(file.path), file.path)
        if other != file.path:
            raise ValueError(f"{file.path} and {other} are the same file")


def source_of(details: Json) -> Source:
    """Returns the source of a task."""
    return Source(
        pattern=details["source"],
        within=details["within"],
        format=details["format"],
        storage_options=details.get("source_options", {}),
    )


def split(path: str) -> tuple[str, re.Pattern[str] | None]:
    """Returns the folder before the first part with a `*`, and the rest as a pattern; none without a `*`."""
    if "*" not in path:
        return path, None
    folder = path[: path.index("*")].rpartition("/")[0]
    rest = path[len(folder) + 1 :]
    parts = re.split(r"(\*\*|\*)", rest)
    tokens = {"*": "[^/]*", "**": ".*"}
    return folder, re.compile("".join(tokens.get(part) or re.escape(part) for part in parts))


def s3_options(options: dict[str, str]) -> Json:
    """Returns options of a storage in the words of pyarrow. Without a key, the credentials of the machine count."""
    known = {key.lower().removeprefix("aws_"): value for key, value in options.items()}
    endpoint = known.get("endpoint") or known.get("endpoint_url")
    found: Json = {
        "access_key": known.get("access_key_id"),
        "secret_key": known.get("secret_access_key"),
        "session_token": known.get("session_token") or known.get("token"),
        "region": known.get("region") or known.get("default_region"),
    }
    if endpoint is not None:
        scheme, _, address = endpoint.rpartition("://")
        found.update({"endpoint_override": address, "scheme": scheme or "https"})
        found["force_virtual_addressing"] = known.get("virtual_hosted_style_request") == "true"
    return {key: value for key, value in found.items() if value is not None}
