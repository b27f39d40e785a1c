"""Cells of CSV and values of JSON as columns."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.types as types

from ..columns import has_parts
from .scalars import WORDS, ValueRefusedError, is_bytes, is_text, refused, scalar_of


class Number(str):
    """The digits of a number of JSON."""

    __slots__ = ()


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"the member {counts.most_common(1)[0][0]!r} occurs twice")
    return members


def _constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


# Arrow's reader of JSON takes two objects on a line for two rows, and rounds numbers.
DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_int=Number, parse_float=Number, parse_constant=_constant)


def parse_json(text: str) -> Any:
    """Parses JSON, of which numbers keep their digits. @raises ValueError for what is not JSON, and for members that occur twice"""
    try:
        value = DECODER.decode(text)
        written = json.dumps(value, ensure_ascii=False) if "\\u" in text else ""
    except json.JSONDecodeError as error:
        raise ValueError(f"column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("the value has too many levels") from None
    if any("\ud800" <= character <= "\udfff" for character in written):
        raise ValueError("a text has half of a surrogate pair")
    return value


def is_readable(field: pa.Field) -> bool:
    """Whether a column is filled from texts."""
    return has_parts(field, _is_readable)


def _is_readable(kind: pa.DataType) -> bool:
    return types.is_fixed_size_list(kind) or types.is_struct(kind) or scalar_of(kind) is not None


def column_of_cells(cells: pa.Array, field: pa.Field) -> pa.Array:
    """Converts cells of CSV. Two quotes are an empty text, or no bytes, and null in other columns. @raises ValueRefusedError"""
    kind = field.type
    if not (is_text(kind) or is_bytes(kind)):
        cells = compute.if_else(compute.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    scalar = scalar_of(kind)
    if scalar is not None:
        return _filled(scalar.read(cells, kind), field)
    values: list[Any] = []
    for row, cell in enumerate(cells.to_pylist()):
        try:
            values.append(None if cell is None else parse_json(cell))
        except ValueError as error:
            raise ValueRefusedError(row, str(error)) from None
    return column_of_members(values, field)


def column_of_members(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Converts members of objects of JSON. @raises ValueRefusedError"""
    return _filled(column_of_json(values, field.type), field)


def _filled(column: pa.Array, field: pa.Field) -> pa.Array:
    """Refuses nulls of a column that has none."""
    if column.null_count > 0 and not field.nullable:
        row = compute.index(column.is_null(), pa.scalar(True)).as_py()
        raise ValueRefusedError(row, "a value is missing, and the column is not nullable")
    return column


def column_of_json(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Converts values of JSON. @raises ValueRefusedError"""
    if types.is_struct(kind):
        return _structs(values, kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(values, kind)
    scalar = scalar_of(kind)
    if scalar is None:
        raise ValueRefusedError(0, f"texts are not read as {kind}")
    texts = [_text(row, value, kind) for row, value in enumerate(values)]
    return scalar.read(pa.array(texts, pa.string()), kind)


def _text(row: int, value: Any, kind: pa.DataType) -> str | None:
    """Returns the text of a value that JSON has in the form of the type."""
    if value is None:
        return None
    if types.is_boolean(kind):
        is_form = isinstance(value, bool)
    elif types.is_integer(kind) or types.is_duration(kind) or types.is_decimal(kind):
        is_form = isinstance(value, Number)
    elif types.is_floating(kind):
        is_form = isinstance(value, Number) or (isinstance(value, str) and value in WORDS)
    else:
        is_form = isinstance(value, str) and not isinstance(value, Number)
    if not is_form:
        raise refused(row, value, kind)
    return str(value).lower() if isinstance(value, bool) else value


def _lists(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    is_vector = types.is_fixed_size_list(kind)
    if is_vector and None in values:
        return _vectors(values, kind)
    starts, items = [0], []
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, list):
            raise refused(row, value, kind)
        if is_vector and value is not None and (len(value) != kind.list_size or None in value):
            raise refused(row, value, kind)
        items.extend(value or [])
        starts.append(len(items))
    try:
        content = column_of_json(items, kind.value_type)
        if not kind.value_field.nullable and not is_vector and None in items:
            raise refused(items.index(None), None, kind.value_type)
    except ValueRefusedError as error:
        # Empty lists begin at the same item, and the last one that begins there has it.
        raise ValueRefusedError(bisect_right(starts, error.row) - 1, str(error)) from None
    if is_vector:
        return pa.FixedSizeListArray.from_arrays(content, type=kind)
    mask = pa.array([value is None for value in values], pa.bool_())
    array = pa.ListArray if types.is_list(kind) else pa.LargeListArray
    offsets = pa.array(starts, pa.int32() if types.is_list(kind) else pa.int64())
    return array.from_arrays(offsets, content, type=kind, mask=mask)


def _vectors(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Converts vectors, some of which are null: these have numbers in the column, but none before."""
    rows = [row for row, value in enumerate(values) if value is not None]
    try:
        given = _lists([values[row] for row in rows], kind)
    except ValueRefusedError as error:
        raise ValueRefusedError(rows[error.row], str(error)) from None
    if not rows:
        return pa.nulls(len(values), kind)
    places = dict(zip(rows, range(len(rows))))
    return given.take(pa.array([places.get(row) for row in range(len(values))], pa.int64()))


def _structs(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    fields = [kind.field(at) for at in range(kind.num_fields)]
    names = {field.name for field in fields}
    for row, value in enumerate(values):
        if value is not None and (not isinstance(value, dict) or not names.issuperset(value)):
            raise refused(row, value, kind)
    members = []
    for field in fields:
        own = [None if value is None else value.get(field.name) for value in values]
        members.append(column_of_json(own, field.type))
        if not field.nullable:
            for row, value in enumerate(values):
                if value is not None and own[row] is None:
                    raise refused(row, value, kind)
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask)
