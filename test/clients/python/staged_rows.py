"""Long uploads through the gateway while pylance itself writes to the same table, and what pylance says of it.

    staged_rows.py URI BASE
"""

import sys
import threading
import urllib.request
from datetime import timedelta

import lance
import pyarrow as pa

from support import stream

uri, base = sys.argv[1:]
ROUNDS = 6
BATCHES = [pa.table({"id": range(at, at + 2000), "text": [f"row {i}" for i in range(at, at + 2000)]}) for at in range(0, 12000, 2000)]
LONG = pa.concat_tables(BATCHES)
SHORT = LONG.slice(0, 10)


def send(path: str, body: bytes) -> None:
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    urllib.request.urlopen(urllib.request.Request(f"{uri}/v1/table/{path}", data=body, headers=headers)).read()


send("staged/create", stream(LONG))
path = f"{base}/staged.lance"
failures: list[Exception] = []


def repeat(work) -> threading.Thread:
    def run() -> None:
        try:
            for _ in range(ROUNDS):
                work()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


threads = [
    repeat(lambda: send("staged/insert", stream(LONG))),
    repeat(lambda: lance.write_dataset(SHORT, path, mode="append")),
    repeat(lambda: lance.dataset(path).update_config({"touched": "yes"})),
]
for thread in threads:
    thread.join()
assert not failures, failures

rows = LONG.num_rows * (ROUNDS + 1) + SHORT.num_rows * ROUNDS
dataset = lance.dataset(path)
dataset.validate()
assert dataset.count_rows() == rows, (dataset.count_rows(), rows)
assert dataset.version == 1 + 3 * ROUNDS, dataset.version
ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
assert len(set(ids)) == len(ids) and ids == sorted(ids), ids
for version in range(1, dataset.version + 1):
    old = lance.dataset(path, version=version)
    old.validate()
    assert dataset.read_transaction(version) is not None

dataset.create_scalar_index("id", "BTREE")
send("staged/insert", stream(LONG))
dataset = lance.dataset(path)
assert dataset.count_rows("id = 77") == ROUNDS + 2
dataset.delete("id = 77")
dataset.optimize.compact_files()
dataset.optimize.optimize_indices()
dataset.cleanup_old_versions(timedelta(0))
dataset = lance.dataset(path)
dataset.validate()
assert dataset.count_rows("id = 77") == 0
assert dataset.count_rows("id = 11999") == ROUNDS + 2
send("staged/insert?mode=overwrite", stream(LONG))
dataset = lance.dataset(path)
dataset.validate()
assert dataset.count_rows() == LONG.num_rows and not dataset.list_indices()
assert dataset.to_table().sort_by("id") == LONG.combine_chunks()
