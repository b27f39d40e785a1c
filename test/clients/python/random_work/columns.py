"""Columns of every type, and the values that random rows draw."""

import datetime as dt
import decimal
import math

import pyarrow as pa

WORDS = ["red apple", "green plum", "it's", 'say "hi"', "naïve 日本", "", "a%b_c", "back\\slash", "NULL", "x" * 50, "new\nline", "\u2028", "😀", "`tick`"]
EPOCH = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)


def maybe(rng, value, chance=0.15):
    return None if rng.random() < chance else value


def ints(bits, signed=True):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return lambda rng: rng.choice([0, 1, low, high, rng.randint(low, high), rng.randint(0, 9)])


def floats(rng):
    return rng.choice([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, rng.uniform(-5, 5)])


def words(rng):
    return rng.choice(WORDS)


def lists(of, most=3):
    return lambda rng: [maybe(rng, of(rng)) for _ in range(rng.randint(0, most))]


POINT = pa.struct([("x", pa.int32()), ("y z", pa.string()), ("in", pa.struct([("w", pa.float64())]))])

TYPES = {
    "text": (pa.string(), words),
    "big text": (pa.large_string(), words),
    "select": (pa.int32(), ints(32)),
    "Größe": (pa.float64(), floats),
    "CamelCase": (pa.int16(), ints(16)),
    "tiny": (pa.int8(), ints(8)),
    "u64": (pa.uint64(), ints(64, False)),
    "u32": (pa.uint32(), ints(32, False)),
    "long": (pa.int64(), ints(64)),
    "f32": (pa.float32(), lambda rng: float(rng.randint(-4, 4)) / 2),
    "flag": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "day": (pa.date32(), lambda rng: EPOCH.date() + dt.timedelta(days=rng.randint(-9, 9))),
    "ms day": (pa.date64(), lambda rng: EPOCH.date() + dt.timedelta(days=rng.randint(-9, 9))),
    "at": (pa.timestamp("us"), lambda rng: EPOCH + dt.timedelta(seconds=rng.randint(-9, 9))),
    "at utc": (pa.timestamp("us", "UTC"), lambda rng: (EPOCH + dt.timedelta(seconds=rng.randint(-9, 9))).replace(tzinfo=dt.UTC)),
    "at zone": (pa.timestamp("ns", "Europe/Berlin"), lambda rng: (EPOCH + dt.timedelta(seconds=rng.randint(-9, 9))).replace(tzinfo=dt.UTC)),
    "clock": (pa.time64("us"), lambda rng: dt.time(rng.randint(0, 23), 5, 6)),
    "lasts": (pa.duration("ms"), lambda rng: dt.timedelta(milliseconds=rng.randint(-9, 9))),
    "price": (pa.decimal128(10, 2), lambda rng: decimal.Decimal(rng.randint(-999, 999)) / 100),
    "huge": (pa.decimal256(50, 3), lambda rng: decimal.Decimal(rng.randint(-999, 999)) / 1000),
    "bytes": (pa.binary(), lambda rng: words(rng).encode()),
    "large bytes": (pa.large_binary(), lambda rng: words(rng).encode()),
    "four": (pa.binary(4), lambda rng: bytes([rng.randint(0, 255)] * 4)),
    "tags": (pa.list_(pa.string()), lists(words)),
    "large list": (pa.large_list(pa.int32()), lists(ints(32))),
    "nested": (pa.list_(pa.list_(pa.int32())), lists(lists(ints(32)), 2)),
    "three": (pa.list_(pa.int32(), 3), lambda rng: [ints(32)(rng) for _ in range(3)]),
    "point": (POINT, lambda rng: {"x": maybe(rng, rng.randint(0, 9)), "y z": words(rng), "in": maybe(rng, {"w": floats(rng)})}),
    "points": (pa.list_(POINT), lists(lambda rng: {"x": rng.randint(0, 9), "y z": words(rng), "in": {"w": floats(rng)}}, 2)),
    "color": (pa.dictionary(pa.int32(), pa.string()), words),
    "small color": (pa.dictionary(pa.int8(), pa.large_string()), words),
    "void": (pa.null(), lambda rng: None),
    "view": (pa.string_view(), words),
}

VECTOR = pa.list_(pa.float32(), 2)


def array(values, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
