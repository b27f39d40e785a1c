"""Imports of files on Ray. Arguments: the address of a gateway, and what to do:

`make` files in a directory; `upload` them to a bucket; `compare` a table of an import on the cluster with that of one in the gateway; `count` the rows of a table."""

import json
import os
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import lancedb
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as parquet
from support import uri

FILES, ROWS = 5, 4000
WORDS = ["", "a", "ü", "tab\tand\nline", None]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("small", pa.int8()),
        ("large", pa.uint64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("flag", pa.bool_()),
        ("word", pa.string()),
        ("bytes", pa.binary()),
        ("price", pa.decimal128(20, 4)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("ns")),
        ("took", pa.duration("ms")),
        ("vector", pa.list_(pa.float32(), 4)),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float64()), ("name", pa.large_string())])),
    ]
)


def row(number):
    if number % 97 == 5:
        return {"id": number}
    return {
        "id": number,
        "small": number % 256 - 128,
        "large": 2**64 - 1 - number,
        "single": number / 8,
        "double": number / 7,
        "flag": number % 3 == 0,
        "word": WORDS[number % len(WORDS)],
        "bytes": bytes([number % 256, 0]),
        "price": Decimal(number).scaleb(-4) - 1000,
        "day": date(1969, 12, 1) + timedelta(days=number % 60),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999_999, timezone.utc) + timedelta(microseconds=number),
        "local": datetime(2026, 3, 29, 2, 30) + timedelta(seconds=number),
        "took": timedelta(milliseconds=number - 5),
        "vector": [number, 0.5, -1, 2**-10],
        "tags": [f"t{at}" for at in range(number % 4)],
        "place": {"x": number / 3, "name": f"place {number}"},
    }


def make(folder):
    rows = pa.Table.from_pylist([row(number) for number in range(FILES * ROWS)], SCHEMA)
    for name in ("in", "whole", "bad", "texts"):
        os.mkdir(f"{folder}/{name}")
    for part in range(FILES):
        parquet.write_table(rows.slice(part * ROWS, ROWS), f"{folder}/in/part-{part}.parquet", row_group_size=1000)
    parquet.write_table(rows, f"{folder}/whole/rows.parquet")
    parquet.write_table(rows.slice(0, 0), f"{folder}/whole/none.parquet")
    # The last one has a value that the table of the first ones cannot hold.
    for part in range(3):
        value = 2**40 if part == 2 else part
        parquet.write_table(pa.table({"id": [part], "small": [value]}), f"{folder}/bad/part-{part}.parquet")
        lines = [f"{at},{value if at == 1500 else 1}\n" for at in range(2000)]
        with open(f"{folder}/bad/part-{part}.csv", "w") as file:
            file.writelines(["id,small\n", *lines])


def upload(folder, options, place):
    """Copies the files of an import to a bucket."""
    # The server takes the checksum that trails a body for the next request if it comes late (versitygw 1.8.0, keep-alive).
    os.environ["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
    bucket = fs.S3FileSystem(
        access_key=options["aws_access_key_id"],
        secret_key=options["aws_secret_access_key"],
        region=options["aws_region"],
        endpoint_override=options["aws_endpoint"].removeprefix("http://"),
        scheme="http",
    )
    for part in range(FILES):
        with open(f"{folder}/in/part-{part}.parquet", "rb") as file, bucket.open_output_stream(f"{place}/part-{part}.parquet") as out:
            out.write(file.read())


def rows_of(name):
    table = db.open_table(name)
    return table.schema, table.search().limit(10 * FILES * ROWS).to_arrow().sort_by("id")


if sys.argv[2] == "make":
    make(sys.argv[3])
elif sys.argv[2] == "upload":
    upload(sys.argv[3], json.loads(sys.argv[4]), sys.argv[5])
else:
    db = lancedb.connect("db://any", api_key="unused", host_override=uri)
    if sys.argv[2] == "count":
        print(json.dumps(db.open_table(sys.argv[3]).count_rows()))
    else:
        schema, here = rows_of("here")
        own_schema, on_ray = rows_of(sys.argv[3])
        assert own_schema.equals(schema), f"{own_schema}\n{schema}"
        assert here.num_rows == FILES * ROWS
        for column in here.column_names:
            assert on_ray.column(column).equals(here.column(column)), column
        print(json.dumps(on_ray.num_rows))
