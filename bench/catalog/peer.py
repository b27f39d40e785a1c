"""Roots with many tables.

    peer.py root FOLDER COUNT    writes the manifest of a catalog with the namespace `bench` and COUNT tables in it
"""

import os
import random
import sys

import lance
import pyarrow


def root(folder: str, count: int) -> None:
    key = {"lance-schema:unenforced-primary-key:position": "0"}
    names = pyarrow.list_(pyarrow.field("object_id", pyarrow.string()))
    schema = pyarrow.schema(
        [
            pyarrow.field("object_id", pyarrow.string(), False, key),
            pyarrow.field("object_type", pyarrow.string(), False),
            ("location", pyarrow.string()),
            ("metadata", pyarrow.string()),
            ("base_objects", names),
        ]
    )
    prefixes = random.Random(1)
    ids = ["bench"] + [f"bench$t{number:07d}" for number in range(count)]
    locations = [None] + [f"{prefixes.getrandbits(32):08x}_{name}" for name in ids[1:]]
    types = ["namespace"] + ["table"] * count
    nulls = [pyarrow.nulls(len(ids), type) for type in (pyarrow.string(), names)]
    table = pyarrow.table([ids, types, locations, *nulls], schema=schema)
    lance.write_dataset(table, os.path.join(folder, "__manifest"))


if __name__ == "__main__":
    {"root": root}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
