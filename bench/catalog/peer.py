"""Roots with many tables.

    peer.py root FOLDER COUNT [OPTIONS]    writes the manifest of a catalog with the namespace `bench` and COUNT tables
                                           in it; OPTIONS is JSON with the options of the storage
"""

import json
import os
import random
import sys

import lance
import pyarrow


def root(folder: str, count: int, storage_options: dict[str, str]) -> None:
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
    lance.write_dataset(table, os.path.join(folder, "__manifest"), storage_options=storage_options)


if __name__ == "__main__":
    command, folder, count, *options = sys.argv[1:]
    {"root": root}[command](folder, int(count), json.loads(options[0]) if options else {})
