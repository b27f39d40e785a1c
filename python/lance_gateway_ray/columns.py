"""Columns of files as columns of a table: with the same values, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.types as types

PLAIN = (
    types.is_boolean,
    types.is_integer,
    types.is_floating,
    types.is_string,
    types.is_large_string,
    types.is_binary,
    types.is_large_binary,
    types.is_date,
    types.is_time,
    types.is_duration,
)
"""Types without parameters that the format of tables has in the same form."""


def check_storable(schema: pa.Schema, path: str) -> None:
    """Refuses columns that a new table may not keep exactly."""
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"{path}: two columns have the same name")
    for field in schema:
        if not is_storable(field):
            raise ValueError(f"{path}: an import on a cluster makes no column {field.name!r} of type {field.type}")


def is_storable(field: pa.Field) -> bool:
    """Whether a table keeps a column exactly."""
    return has_parts(field, _is_storable)


def has_parts(field: pa.Field, accepts: Callable[[pa.DataType], bool]) -> bool:
    """Whether a column means what its type says, and a function accepts it, or the vectors, structs and values in it."""
    kind = field.type
    if any(key.startswith((b"lance", b"ARROW:extension")) for key in field.metadata or {}):
        return False
    if types.is_list(kind) or types.is_large_list(kind):
        return has_parts(kind.value_field, accepts)
    if types.is_fixed_size_list(kind):
        return accepts(kind) and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type))
    if types.is_struct(kind):
        return accepts(kind) and all(has_parts(kind.field(at), accepts) for at in range(kind.num_fields))
    return accepts(kind)


def _is_storable(kind: pa.DataType) -> bool:
    if types.is_fixed_size_list(kind):
        return kind.list_size > 0
    if types.is_struct(kind):
        return 0 < kind.num_fields == len({kind.field(at).name for at in range(kind.num_fields)})
    if types.is_decimal128(kind) or types.is_decimal256(kind):
        return 0 <= kind.scale <= kind.precision
    if types.is_timestamp(kind):
        return kind.tz is None or re.fullmatch(r"[\w+/-]{2,}", kind.tz) is not None
    if types.is_fixed_size_binary(kind):
        return kind.byte_width > 0
    return any(is_plain(kind) for is_plain in PLAIN)


def unify(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Returns the schema of a new table for files that have the same columns, of which some may have nulls."""
    [(first, schema), *others] = schemas
    check_storable(schema, first)
    for path, other in others:
        check_names(other, schema, path)
        for at, field in enumerate(schema):
            if field.name not in other.names:
                raise ValueError(f"{path}: column {field.name!r} is missing, and in {first}")
            own = other.field(field.name)
            if not own.type.equals(field.type):
                raise ValueError(f"{path}: column {field.name!r} is {own.type}, and in {first} {field.type}")
            if own.nullable:
                schema = schema.set(at, field.with_nullable(True))
    return schema.remove_metadata()


def check_names(schema: pa.Schema, table: pa.Schema, path: str) -> None:
    """Refuses columns that the table does not have, or that a file lacks and that must not be null."""
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"{path}: two columns have the same name")
    for name in schema.names:
        if name not in table.names:
            raise ValueError(f"{path}: column {name!r} is not in the table")
    for field in table:
        if field.name not in schema.names and not field.nullable:
            raise ValueError(f"{path}: column {field.name!r} is missing and not nullable")


def check_whole(schema: pa.Schema, chosen: pa.Schema, path: str) -> None:
    """Refuses a file for a new table that lacks one of the chosen columns, which may have another name by mistake."""
    for name in chosen.names:
        if name not in schema.names:
            raise ValueError(f"{path}: column {name!r} is missing, and --type names it")


def check_fits(schema: pa.Schema, table: pa.Schema, path: str) -> None:
    """Refuses columns whose values the table does not keep exactly."""
    check_names(schema, table, path)
    for field in schema:
        wanted = table.field(field.name)
        if isinstance(wanted.type, pa.BaseExtensionType) or any(
            key.startswith((b"lance", b"ARROW:extension")) for key in wanted.metadata or {}
        ):
            raise ValueError(f"{path}: an import on a cluster does not fill the column {field.name!r} of the table")
        if not is_exact(field.type, wanted.type):
            raise ValueError(f"{path}: column {field.name!r} is {field.type}, in the table {wanted.type}")


def is_exact(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast either keeps values or fails."""
    if types.is_dictionary(own):
        return is_exact(own.value_type, wanted)
    if types.is_fixed_size_list(wanted) and (types.is_list(own) or types.is_large_list(own)):
        return own.value_type.equals(wanted.value_type)
    if types.is_timestamp(own) and types.is_timestamp(wanted):
        return own.tz == wanted.tz and UNITS.index(own.unit) <= UNITS.index(wanted.unit)
    if types.is_floating(own) and types.is_floating(wanted):
        return own.bit_width <= wanted.bit_width
    kinds = (is_text, is_bytes, types.is_integer)
    return own.equals(wanted) or types.is_null(own) or any(is_kind(own) and is_kind(wanted) for is_kind in kinds)


UNITS = ("s", "ms", "us", "ns")


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is that of texts."""
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is that of bytes of any length."""
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)


def conform(batch: pa.RecordBatch, table: pa.Schema, path: str) -> pa.RecordBatch:
    """Returns rows with the columns of a table. The columns fit, but a value may be too large, or null."""
    arrays = []
    for field in table:
        at = batch.schema.get_field_index(field.name)
        values = pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at)
        try:
            if types.is_dictionary(values.type):
                values = values.dictionary_decode()
            values = values if values.type.equals(field.type) else values.cast(field.type)
        except pa.ArrowException as error:
            raise ValueError(f"{path}: column {field.name!r}: {error}") from None
        if values.null_count > 0 and not field.nullable:
            raise ValueError(f"{path}: column {field.name!r} has a null, and is not nullable")
        arrays.append(values)
    return pa.RecordBatch.from_arrays(arrays, schema=table)
