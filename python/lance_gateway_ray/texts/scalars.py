"""Texts of single values as columns. A pattern for each type admits the forms that pyarrow and the gateway read alike."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.types as types

INTEGER = "-?(?:0|[1-9][0-9]*)"
NUMBER = rf"{INTEGER}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
WORDS = ("NaN", "inf", "-inf", "Infinity", "-Infinity")
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
ZONE = "(?:Z|[-+](?:[01][0-9]|2[0-3]):?[0-5][0-9])"
ANYTHING = "(?s:.*)"


class ValueRefusedError(ValueError):
    """A value that is not read, by the number of its row from 0."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


@dataclass(frozen=True)
class Scalar:
    """How a type is read: the forms of its texts, and their conversion."""

    pattern: str
    convert: Callable[[pa.Array, pa.DataType], pa.Array]

    def read(self, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        """Converts texts. @raises ValueRefusedError for the first one that is not kept"""
        matches = compute.match_substring_regex(texts, f"^(?:{self.pattern})$")
        row = compute.index(matches, pa.scalar(False)).as_py()
        if row >= 0:
            raise refused(row, texts[row].as_py(), kind)
        try:
            return self.convert(texts, kind)
        except pa.ArrowException:
            for row, text in enumerate(texts):
                try:
                    self.convert(pa.array([text], pa.string()), kind)
                except pa.ArrowException:
                    raise refused(row, text.as_py(), kind) from None
            raise


def refused(row: int, value: object, kind: pa.DataType) -> ValueRefusedError:
    """Returns the error of a value."""
    try:
        text = str(value)
    except RecursionError:
        text = "a value of many levels"
    return ValueRefusedError(row, f"{text[:100]!r} is not read as {kind}")


def scalar_of(kind: pa.DataType) -> Scalar | None:
    """Returns how a type of single values is read; None for others."""
    if types.is_timestamp(kind):
        return Scalar(f"{DAY}(?:[T ]{CLOCK})?", _cast) if not kind.tz else Scalar(f"{DAY}[T ]{CLOCK}{ZONE}", _moments)
    if types.is_decimal128(kind) or types.is_decimal256(kind):
        return Scalar(_decimals(kind), _cast) if 0 <= kind.scale <= kind.precision else None
    return next((scalar for is_kind, scalar in SCALARS if is_kind(kind)), None)


def _decimals(kind: pa.DataType) -> str:
    """Returns the forms of decimals of a type. pyarrow makes other numbers of more digits than the bits of the type have."""
    before, after = kind.precision - kind.scale, kind.scale
    whole = f"(?:0|[1-9][0-9]{{0,{before - 1}}})" if before > 0 else "0"
    zeros = (38 if types.is_decimal128(kind) else 76) - kind.precision
    fraction = rf"\.[0-9]{{1,{after}}}0{{0,{zeros}}}" if after > 0 else rf"\.0{{1,{zeros}}}"
    return rf"-?{whole}(?:{fraction})?" if after + zeros > 0 else rf"-?{whole}"


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return compute.cast(texts, kind)


def _moments(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return compute.cast(texts, pa.timestamp(kind.unit, "UTC")).cast(kind)


def _durations(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return compute.cast(texts, pa.int64()).cast(kind)


def _times(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    day = compute.binary_join_element_wise("1970-01-01T", texts, "")
    units = compute.cast(day, pa.timestamp(kind.unit)).cast(pa.int64())
    return units.cast(pa.int32() if types.is_time32(kind) else pa.int64()).cast(kind)


def _days(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return compute.cast(texts, pa.date32()).cast(kind)


def _bytes(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    values: list[bytes | None] = []
    for row, text in enumerate(texts.to_pylist()):
        values.append(None if text is None else base64.b64decode(text, validate=True))
        # Other forms of the same bytes have lost something.
        if text is not None and base64.b64encode(values[-1] or b"").decode() != text:
            raise refused(row, text, kind)
    return pa.array(values, kind)


SURE_DIGITS = {16: (3, 1e-3), 32: (6, 1e-30), 64: (15, 1e-290)}
"""Digits that numbers of so many bits keep, from a size on."""


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Converts numbers that, written with as many digits, are the text again."""
    values = compute.cast(texts, pa.float64()).cast(kind)
    stored = values.cast(pa.float64())
    digits, least = SURE_DIGITS[kind.bit_width]
    is_sure = compute.and_(compute.less_equal(compute.utf8_length(texts), digits), compute.greater_equal(compute.abs(stored), least))
    is_finite = compute.is_finite(stored)
    for row in compute.indices_nonzero(compute.invert(compute.and_(is_sure, is_finite))).to_pylist():
        text = texts[row].as_py()
        if not is_kept(text, stored[row].as_py()):
            raise refused(row, text, kind)
    return values


def is_kept(text: str, value: float) -> bool:
    """Whether a number has all digits of a text."""
    if text in WORDS or not math.isfinite(value):
        return text in WORDS
    digits, power = significant(text)
    if len(digits) > 100:
        return False
    if digits == "" or repr(value) == text:
        return True
    # Of two numbers that are as near, the gateway takes the one that is farther from zero.
    rounded = Context(len(digits), ROUND_HALF_UP).create_decimal_from_float(value)
    return significant(str(rounded)) == (digits, power)


def significant(text: str) -> tuple[str, int]:
    """Returns the digits of a number without zeros at both ends, and the power of ten of the last one."""
    found = re.fullmatch(r"-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?", text)
    whole, fraction, power = found.groups("") if found else ("", "", "")
    every = whole + fraction
    digits = every.strip("0")
    if digits == "":
        return "", 0
    zeros = len(every) - len(every.rstrip("0"))
    # No number has as large a power, and Python reads no more digits than some.
    exponent = int(power or "0") if len(power) < 20 else 10**20
    return digits, exponent - len(fraction) + zeros


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is that of bytes."""
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is that of texts."""
    return types.is_string(kind) or types.is_large_string(kind)


SCALARS: tuple[tuple[Callable[[pa.DataType], bool], Scalar], ...] = (
    (is_text, Scalar(ANYTHING, _cast)),
    (types.is_integer, Scalar(INTEGER, _cast)),
    (types.is_floating, Scalar(f"{NUMBER}|{'|'.join(WORDS)}", _floats)),
    (types.is_boolean, Scalar("(?i:true|false)", _cast)),
    (types.is_date, Scalar(DAY, _days)),
    (types.is_time, Scalar(CLOCK, _times)),
    (types.is_duration, Scalar(INTEGER, _durations)),
    (is_bytes, Scalar("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", _bytes)),
)
