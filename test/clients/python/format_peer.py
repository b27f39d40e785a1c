"""pylance as the peer of this project's own code for the table format.

    format_peer.py make DIRECTORY             datasets `new`, `old`, `stable` and `v1file`, with everything read here
    format_peer.py pack DIRECTORY             the metadata files of these and what pylance says of them, as JSON; the
                                              fixtures in test/fixtures/dir/testdata are made with it
    format_peer.py read DATASET [BRANCH]      what pylance says of a dataset, as JSON; validates it, too
    format_peer.py append DATASET COUNT       appends COUNT times one row, and prints how often it had to try again
    format_peer.py configure DATASET COUNT    sets COUNT config keys `peer0`... one by one, likewise
    format_peer.py write DATASET              one commit of every kind that has to work after ours
"""

import json
import sys
from base64 import b64encode
from pathlib import Path

import lance
import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"unit": "none"}),
        pa.field("name", pa.string()),
        pa.field("at", pa.struct([pa.field("x.y", pa.int32()), pa.field("z", pa.int32())])),
    ],
    metadata={"made": "by pylance"},
)


def rows(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    at = [{"x.y": i, "z": -i} for i in ids]
    return pa.table({"id": ids, "name": [f"n{i}" for i in ids], "at": at}, schema=SCHEMA)


def make(directory: str) -> None:
    base = Path(directory)
    new = lance.write_dataset(rows(0, 3), base / "new")
    properties = {"job": "nightly"}
    new = lance.write_dataset(
        rows(3, 3), new, mode="append", commit_message="more", transaction_properties=properties
    )
    new.update_config({"lance.auto_cleanup.interval": "1000", "owner": "ops"})
    new.update_metadata({"note": "täble"})
    new.delete("id = 1")
    new.create_scalar_index("id", "BTREE")
    new.tags.create("first", 1)
    branch = new.create_branch("feature/a", 3)
    lance.write_dataset(rows(10, 2), branch, mode="append")
    new.tags.create("on-branch", ("feature/a", 4))
    new.drop_index("id_idx")
    new.create_scalar_index("name", "BITMAP")

    old = lance.write_dataset(rows(0, 2), base / "old", enable_v2_manifest_paths=False)
    lance.write_dataset(rows(2, 2), old, mode="append")
    lance.write_dataset(rows(0, 2), base / "stable", enable_stable_row_ids=True)
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    lance.write_dataset(pa.table({"word": words}), base / "v1file", data_storage_version="legacy")


def pack(directory: str) -> dict:
    make(directory)
    kinds = {".manifest", ".txn", ".json"}
    packed = {}
    for root in sorted(Path(directory).iterdir()):
        files = sorted(file for file in root.rglob("*") if file.suffix in kinds)
        packed[root.name] = {
            "files": {str(file.relative_to(root)): b64encode(file.read_bytes()).decode() for file in files},
            "said": read(str(root)),
        }
    packed["new"]["branch"] = read(str(Path(directory) / "new"), "feature/a")
    return packed


def text(metadata) -> dict:
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}


def read(path: str, branch: str | None = None) -> dict:
    dataset = lance.dataset(path)
    if branch is not None:
        dataset = dataset.checkout_version((branch, None))
    dataset.validate()
    transactions = {}
    for version in dataset.versions():
        try:
            transaction = dataset.read_transaction(version["version"])
        except TypeError:
            # pylance 14.0.2 cannot show a compaction that rewrote an index.
            continue
        if transaction is not None:
            transactions[version["version"]] = {
                "uuid": transaction.uuid,
                "readVersion": transaction.read_version,
                "operation": type(transaction.operation).__name__,
                "properties": transaction.transaction_properties or {},
            }
    return {
        "version": dataset.version,
        "versions": [version["version"] for version in dataset.versions()],
        "rows": dataset.count_rows(),
        "scanned": dataset.to_table().num_rows,
        "fragments": len(dataset.get_fragments()),
        "config": dataset.config(),
        "tableMetadata": dataset.metadata,
        "schemaMetadata": text(dataset.schema.metadata),
        "fieldMetadata": {field.name: text(field.metadata) for field in dataset.schema},
        "indices": sorted(index.name for index in dataset.describe_indices()),
        "tags": {name: [tag["branch"], tag["version"]] for name, tag in dataset.tags.list().items()},
        "branches": {
            name: [branch["parent_branch"], branch["parent_version"], branch["create_at"], branch["manifest_size"]]
            for name, branch in dataset.branches.list().items()
        },
        "transactions": transactions,
    }


def repeat(path: str, count: int, step) -> dict:
    retries = 0
    for i in range(count):
        while True:
            try:
                step(i)
                break
            except OSError as error:
                if "onflict" not in str(error):
                    raise
                retries += 1
    return {"retries": retries, "version": lance.dataset(path).version}


def append(path: str, count: int) -> dict:
    held = lance.dataset(path)
    first = rows(1000, 1) if "at" in held.schema.names else held.to_table(limit=1)
    return repeat(path, count, lambda i: lance.write_dataset(first, held if i % 2 else path, mode="append"))


def configure(path: str, count: int) -> dict:
    return repeat(path, count, lambda i: lance.dataset(path).update_config({f"peer{i}": str(i)}))


def write(path: str) -> dict:
    dataset = lance.write_dataset(rows(100, 4), path, mode="append")
    dataset.update({"name": "'new'"}, where="id = 100")
    dataset.delete("id = 101")
    dataset.merge_insert("id").when_not_matched_insert_all().execute(rows(103, 2))
    dataset.add_columns({"twice": "id * 2"})
    dataset.update_schema_metadata({"after": "ours"})
    dataset.update_config({"after": "ours"})
    dataset.create_scalar_index("id", "BTREE", replace=True)
    dataset.optimize.compact_files()
    dataset.optimize.optimize_indices()
    dataset.restore()
    dataset.drop_columns(["twice"])
    return read(path)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    commands = {"make": make, "pack": pack, "read": read, "append": append, "configure": configure, "write": write}
    numbers = [int(argument) if argument.isdigit() else argument for argument in arguments]
    print(json.dumps(commands[command](*numbers)))
