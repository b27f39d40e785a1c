"""Runs the same code on a local directory and through the gateway, and compares what both answer."""

import asyncio
import tempfile
from datetime import timedelta

import lancedb
import pyarrow as pa

# The clients repeat some statuses; a repeated mistake of a user shows as this error.
REPEATED = "Hit retry limit"


def plain(value):
    """Returns an answer in a form that can be compared: tables as their schema and rows."""
    if isinstance(value, pa.Table):
        return str(value.schema.remove_metadata()), value.to_pylist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (dict, str, int, float, bool, type(None))):
        return value
    return repr(value)


class Beside:
    """A local database and the gateway's, side by side."""

    def __init__(self, uri: str):
        self.folder = tempfile.TemporaryDirectory()
        remote = {"api_key": "k", "host_override": uri}
        self.local = lancedb.connect(self.folder.name)
        self.remote = lancedb.connect("db://beside", **remote)
        self._remote_options = remote
        self.failures: list[str] = []
        self.calls = 0

    def same(self, name, work):
        """Does the work on both; the answers have to be equal."""
        self._compare(name, self._outcome(work, self.local), self._outcome(work, self.remote))

    def same_async(self, name, work):
        """Does asynchronous work with both clients; the answers have to be equal."""
        self._compare(name, *self._outcomes_async(work))

    def refused(self, name, work, *words, local=True):
        """Does the work on both; both have to fail with all the words, the gateway at the first try.

        `local` says whether the words are in the local library's text, too.
        """
        self._refused(name, self._outcome(work, self.local), self._outcome(work, self.remote), words, local)

    def refused_async(self, name, work, *words, local=True):
        self._refused(name, *self._outcomes_async(work), words, local)

    def end(self):
        print(f"{self.calls - len(self.failures)} of {self.calls} comparisons passed")
        self.folder.cleanup()
        if self.failures:
            raise SystemExit("\n".join(self.failures))

    def _outcome(self, work, db):
        try:
            return "answer", plain(work(db))
        except Exception as error:
            return "error", f"{type(error).__name__}: {error}"

    def _outcomes_async(self, work):
        async def outcome(uri, **options):
            db = await lancedb.connect_async(uri, **options)
            try:
                return "answer", plain(await work(db))
            except Exception as error:
                return "error", f"{type(error).__name__}: {error}"

        local = asyncio.run(outcome(self.folder.name))
        return local, asyncio.run(outcome("db://beside", **self._remote_options))

    def _compare(self, name, local, remote):
        self.calls += 1
        if local[0] != "answer" or local != remote:
            self.failures.append(f"{name}:\n  local  {local}\n  remote {remote}")

    def _refused(self, name, local, remote, words, in_local):
        self.calls += 1
        missing = [word for word in words if word not in remote[1]]
        missing += [word for word in words if in_local and word not in str(local[1])]
        both = local[0] == remote[0] == "error"
        if not both or missing or REPEATED in remote[1]:
            self.failures.append(f"{name}: without {missing}\n  local  {local}\n  remote {remote}")


FRUIT = ["red apple", "green plum", "red pear", "blue plum", "yellow quince"]


def fruit(count: int, first: int = 0) -> pa.Table:
    """Returns rows with an id, a text and a vector."""
    ids = list(range(first, first + count))
    vectors = pa.array([[float(i), 0.0] for i in ids], pa.list_(pa.float32(), 2))
    texts = [FRUIT[i % len(FRUIT)] for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "text": texts, "vector": vectors})


WAIT = timedelta(seconds=60)
