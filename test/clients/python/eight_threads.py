"""Eight threads change one table through LanceDB's remote client, which repeats nothing; each knows what has to be there."""

import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import lancedb
import pyarrow as pa

THREADS = 8
SHARED = 100
OWN = 10_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("vector", pa.list_(pa.float32(), 4))])


def rows(ids, name):
    """Rows with the given ids."""
    vectors = [[float(i % 7), float(i % 5), float(i % 3), 1.0] for i in ids]
    return pa.table({"id": list(ids), "name": [name] * len(ids), "vector": vectors}, schema=SCHEMA)


def connect(uri):
    config = {"retry_config": {"retries": 0, "connect_retries": 0, "read_retries": 0}}
    return lancedb.connect("db://d", api_key="k", host_override=uri, client_config=config)


class Writer:
    """A thread: the rows of its own that have to be there, and the calls that it has made."""

    def __init__(self, uri, number, seed):
        self.table = connect(uri).open_table("busy")
        self.random = random.Random(f"{seed}-{number}")
        self.next = (number + 1) * OWN
        self.own = set()
        self.calls = Counter()

    def fresh(self, count):
        first, self.next = self.next, self.next + count
        return range(first, first + count)

    def add(self):
        ids = self.fresh(self.random.randint(1, 3))
        self.table.add(rows(ids, "added"))
        self.own.update(ids)

    def upsert(self):
        """Replaces shared rows that other threads replace, too, and inserts one."""
        new = self.fresh(1)
        ids = self.random.sample(range(SHARED), 2) + list(new)
        merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows(ids, "merged"))
        self.own.update(new)

    def update(self):
        if self.own:
            self.table.update(where=f"id = {self.random.choice(sorted(self.own))}", values={"name": "updated"})

    def delete(self):
        if self.own:
            gone = self.random.choice(sorted(self.own))
            self.table.delete(f"id = {gone}")
            self.own.remove(gone)

    def count(self):
        where = f"id >= {self.next // OWN * OWN} and id < {self.next}"
        found = self.table.count_rows(where)
        assert found == len(self.own), f"{found} rows instead of {len(self.own)} where {where}"

    def search(self):
        found = self.table.search([1.0, 2.0, 1.0, 1.0]).limit(10).to_arrow()
        assert found.num_rows == 10, found.num_rows

    def work(self, until):
        works = [self.add, self.add, self.upsert, self.update, self.delete, self.count, self.search, self.search]
        while time.monotonic() < until:
            work = self.random.choice(works)
            work()
            self.calls[work.__name__] += 1


def main(uri, seconds, seed):
    table = connect(uri).create_table("busy", rows(range(SHARED), "first"))
    table.create_scalar_index("id", wait_timeout=timedelta(seconds=60))
    writers = [Writer(uri, number, seed) for number in range(THREADS)]
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(THREADS) as pool:
        for outcome in [pool.submit(writer.work, until) for writer in writers]:
            outcome.result()
    expected = set(range(SHARED)).union(*(writer.own for writer in writers))
    ids = table.search().select(["id"]).limit(10_000_000).to_arrow()["id"].to_pylist()
    twice = [key for key, times in Counter(ids).items() if times > 1]
    assert not twice, f"twice: {twice[:10]}"
    assert set(ids) == expected, f"{len(expected - set(ids))} are missing, {len(set(ids) - expected)} too many"
    assert table.count_rows() == len(expected), table.count_rows()
    print(dict(sum((writer.calls for writer in writers), Counter())))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
