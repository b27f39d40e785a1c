"""Functions of callers, which run on the workers alone: neither the gateway nor the driver imports them."""

from __future__ import annotations

import base64
import hashlib
import importlib
import inspect
import json
import os
import sys
import tempfile
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from .gateway import Json

ENTRY = "user_function"
HIDDEN = "[secret]"
MAX_TYPE = 100
MAX_MESSAGE = 300
MAX_RECORDED = 100
"""Number of failed rows of a fragment that are reported one by one."""


@dataclass(frozen=True)
class Function:
    """A function as the gateway describes it. Its values must not be printed: they may be secrets."""

    entrypoint: str
    kind: str
    digest: str
    source: bytes = field(repr=False)
    inputs: list[tuple[str, str]]
    nullable: frozenset[str]
    initialization: Json = field(repr=False)
    variables: dict[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    """Values that no report may have."""
    python_version: str
    packages: list[str]
    gpu: bool

    def without_secrets(self, text: str) -> str:
        """Returns a text without the values of the secrets, which an exception may quote."""
        for value in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text


@dataclass(frozen=True)
class RowError:
    """A row for which a function has failed."""

    offset: int
    type: str
    message: str


def function_of(details: Json) -> Function:
    """Returns the function that a task describes."""
    artifact, runtime, signature = details["artifact"], details["runtime"], details["signature"]
    return Function(
        entrypoint=artifact["entrypoint"],
        kind=artifact["kind"],
        digest=artifact["digest"],
        source=base64.b64decode(details["source"]),
        inputs=[(parameter, path) for parameter, path in details["inputs"]],
        nullable=frozenset(each["name"] for each in signature["inputs"] if each["nullable"]),
        initialization=details.get("initialization", {}),
        variables={**runtime.get("env", {}), **details.get("secrets", {})},
        secrets=frozenset(details.get("secrets", {}).values()),
        python_version=runtime["python_version"],
        packages=list(runtime["environment"].get("packages", [])),
        gpu=runtime.get("gpu", False),
    )


def load(function: Function) -> Callable[..., Any]:
    """Imports a function in this process, and makes the instance of a class."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if own != function.python_version:
        raise ValueError(f"the function wants Python {function.python_version}, and the workers have {own}")
    if f"sha256:{hashlib.sha256(function.source).hexdigest()}" != function.digest:
        raise ValueError("the source of the function is damaged")
    os.environ.update(function.variables)
    try:
        return imported(function)
    except Exception as error:
        # The job shows it to all who may see the job. Only what may pass is tried again.
        kind = OSError if isinstance(error, OSError) else RuntimeError
        message = f"the function cannot be imported: {type(error).__name__}: {error}"
        raise kind(function.without_secrets(message)) from None


def imported(function: Function) -> Callable[..., Any]:
    """Writes the files of a function, and imports its module."""
    place = Path(tempfile.mkdtemp(prefix="lance-gateway-function-"))
    for path, text in files_of(function).items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(place))
    # A worker may have loaded another one.
    sys.modules.pop(ENTRY, None)
    importlib.invalidate_caches()
    entry = getattr(importlib.import_module(ENTRY), function.entrypoint)
    return typing.cast(Callable[..., Any], entry(**function.initialization) if inspect.isclass(entry) else entry)


def files_of(function: Function) -> dict[str, str]:
    """Returns the files of a source by their paths."""
    text = function.source.decode("utf-8")
    return {f"{ENTRY}.py": text} if function.kind == "python_callable" else dict(json.loads(text)["files"])


def apply(
    call: Callable[..., Any], function: Function, batch: pa.RecordBatch, offsets: Sequence[int], kind: pa.DataType
) -> tuple[list[Any], list[int], list[RowError]]:
    """Calls a function for the rows of a batch; returns the values, the numbers of their rows in the batch, and the rows that have failed."""
    if takes_batches(call):
        return apply_to_batch(call, function, batch, offsets, kind)
    values, rows, errors = [], [], []
    columns = {parameter: batch.column(parameter) for parameter, _ in function.inputs}
    for row, offset in enumerate(offsets):
        try:
            values.append(value_of(call, function, columns, row, kind))
            rows.append(row)
        except Exception as error:
            errors.append(row_error(function, offset, error))
    return values, rows, errors


def value_of(
    call: Callable[..., Any], function: Function, columns: dict[str, pa.Array], row: int, kind: pa.DataType
) -> Any:
    """Returns the value of a row, which its column can keep."""
    arguments = {parameter: column[row].as_py() for parameter, column in columns.items()}
    for parameter, value in arguments.items():
        if value is None and parameter not in function.nullable:
            raise ValueError(f"the parameter {parameter!r} is null")
    value = call(**arguments)
    if value is None:
        raise ValueError("the function has returned None")
    return pa.scalar(value, type=kind)


def apply_to_batch(
    call: Callable[..., Any], function: Function, batch: pa.RecordBatch, offsets: Sequence[int], kind: pa.DataType
) -> tuple[list[Any], list[int], list[RowError]]:
    """Calls a function once for all rows of a batch; all fail together."""
    try:
        names = [parameter for parameter, _ in function.inputs]
        columns = [batch.column(name) for name in names]
        for name, column in zip(names, columns):
            if column.null_count > 0 and name not in function.nullable:
                raise ValueError(f"the parameter {name!r} is null")
        found = (
            call(pa.RecordBatch.from_arrays(columns, names=names))
            if takes_whole_batch(call)
            else call(**dict(zip(names, columns)))
        )
        array = found if isinstance(found, (pa.Array, pa.ChunkedArray)) else pa.array(found)
        values = array.cast(kind)
        if len(values) != len(offsets) or values.null_count > 0:
            raise ValueError(f"the function has returned {len(values)} values, {values.null_count} of them null, for {len(offsets)} rows")
        return list(values), list(range(len(offsets))), []
    except Exception as error:
        return [], [], [row_error(function, offset, error) for offset in offsets]


def takes_batches(call: Callable[..., Any]) -> bool:
    """Whether a function takes Arrow arrays or a batch in place of the values of a row."""
    return takes_whole_batch(call) or "Array" in annotation_names(call)


def takes_whole_batch(call: Callable[..., Any]) -> bool:
    """Whether a function takes a batch."""
    return annotation_names(call) == {"RecordBatch"}


def annotation_names(call: Callable[..., Any]) -> set[str]:
    """Returns the last parts of the names of the types of parameters."""
    parameters = inspect.signature(call).parameters.values()
    texts = [each.annotation if isinstance(each.annotation, str) else getattr(each.annotation, "__name__", "") for each in parameters]
    return {text.rsplit(".", 1)[-1] for text in texts}


def row_error(function: Function, offset: int, error: Exception) -> RowError:
    """Returns what is reported about a failed row."""
    return RowError(offset, type(error).__name__[:MAX_TYPE], function.without_secrets(str(error))[:MAX_MESSAGE])
