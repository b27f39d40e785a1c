"""Every Arrow type with its parameters: what the gateway accepts, pylance and a query return; the rest is refused by column.

    arrow_types.py URI
"""

import io
import json
import sys
import urllib.error
import urllib.request

import lance
import pyarrow as pa

from support import stream

(uri,) = sys.argv[1:]

UNITS = ("s", "ms", "us", "ns")
ZONES = (None, "UTC", "+0530", "Asia/Kolkata", "Etc/GMT+5", "Nowhere/Land", "", " UTC", "é")
INDICES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())

PLAIN = [
    *(pa.null(), pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), *INDICES),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *map(pa.duration, UNITS)),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in ZONES),
    *(pa.decimal128(*each) for each in ((1, 0), (1, 1), (38, 0), (38, 38), (5, -2))),
    *(pa.decimal256(*each) for each in ((1, 0), (76, 0), (76, 76), (39, 2), (5, -2))),
    *(pa.binary(width) for width in (0, 1, 16)),
]
ITEMS = [pa.int8(), pa.float16(), pa.bool_(), pa.decimal128(5, 2), pa.timestamp("us", "UTC"), pa.date32(), pa.binary(3)]
FREE_ITEMS = [*ITEMS, pa.string(), pa.large_string(), pa.binary(), pa.struct([("a", pa.int32())]), pa.list_(pa.int32(), 2)]

ACCEPTED = [
    *PLAIN,
    *(make(item) for item in FREE_ITEMS for make in (pa.list_, pa.large_list)),
    *(pa.list_(item, size) for item in ITEMS for size in (1, 2, 3)),
    *(pa.struct([pa.field("x", item, nullable=nullable)]) for item in FREE_ITEMS for nullable in (True, False)),
    *(pa.map_(key, pa.int32()) for key in FREE_ITEMS),
    *(pa.map_(pa.string(), value) for value in FREE_ITEMS),
    *(pa.dictionary(index, value) for index in INDICES for value in (pa.string(), pa.binary(), pa.int32())),
    pa.struct([]),
    pa.struct([("a", pa.int32()), ("A", pa.int32())]),
]
REFUSED = [
    *(pa.decimal32(9, 2), pa.decimal64(18, 2), pa.month_day_nano_interval()),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in ("+05:30", "-", "a:b")),
    *(pa.list_view(pa.int32()), pa.large_list_view(pa.int32()), pa.run_end_encoded(pa.int32(), pa.string())),
    *(pa.sparse_union([pa.field("a", pa.int32())]), pa.dense_union([pa.field("a", pa.int32())], [5])),
    *(pa.list_(item, 2) for item in (pa.string(), pa.null(), pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()))),
    *(pa.list_(pa.int32(), 0), pa.map_(pa.string(), pa.int32(), keys_sorted=True)),
    *(pa.dictionary(pa.int8(), value) for value in (pa.date32(), pa.decimal128(5, 2), pa.binary(3))),
    *(pa.struct([("a", pa.int32()), ("a", pa.int32())]), pa.list_(pa.list_view(pa.int32()))),
]
NAMES = ["a b", "é", "a\nb", 'a"b', "$", "a/b", "-", "123", "select", "_distance", "x" * 300]
BAD_NAMES = ["", "a.b", "a`b", "a\0b", "_rowid", "_rowaddr"]


def post(path: str, body: bytes, kind: str) -> tuple[int, bytes]:
    request = urllib.request.Request(f"{uri}/v1/table/{path}", data=body, headers={"content-type": kind})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def create(table: str, columns: list[tuple[str, pa.DataType]]) -> tuple[int, dict]:
    schema = pa.schema([pa.field("id", pa.int64()), *(pa.field(name, kind) for name, kind in columns)])
    rows = pa.table([pa.array([1, 2, 3]), *(pa.nulls(3, kind) for _, kind in columns)], schema=schema)
    status, body = post(f"{table}/create", stream(rows), "application/vnd.apache.arrow.stream")
    return status, json.loads(body)


wrong = []
accepted = [(f"c{i}", kind) for i, kind in enumerate(ACCEPTED)] + [(name, pa.int32()) for name in NAMES]
# One table for each: the engine cannot read some tables with many columns of nulls.
for at, columns in enumerate([[column] for column in accepted]):
    status, answer = create(f"t{at}", columns)
    assert status == 200, (columns, answer)
    status, body = post(f"t{at}/query", json.dumps({"k": 10}).encode(), "application/json")
    assert status == 200, (columns, body)
    for result in (lance.dataset(answer["location"]).to_table(), pa.ipc.open_file(io.BytesIO(body)).read_all()):
        result.validate(full=True)
        for name, kind in columns:
            if (result.schema.field(name).type, result.num_rows) != (kind, 3):
                wrong.append((name, str(kind), str(result.schema.field(name))))

refused = [("c", kind) for kind in REFUSED] + [(name, pa.int32()) for name in BAD_NAMES]
for i, (name, kind) in enumerate(refused):
    status, answer = create(f"r{i}", [(name, kind)])
    error = answer.get("error", "")
    says = '"c"' in error or '"item"' in error if name == "c" else "name" in error
    if status != 400 or not says or ".rs:" in error:
        wrong.append((name, str(kind), status, answer))

assert not wrong, "\n".join(map(str, wrong))
print(f"{len(accepted)} accepted, {len(refused)} refused")
