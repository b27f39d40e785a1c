"""Runs the same code on a local directory and through the gateway, and compares what both answer."""

import asyncio
import re
import tempfile
from datetime import timedelta

import lancedb
import pyarrow as pa
from lancedb.remote.errors import LanceDBClientError

# The clients repeat some statuses; a repeated mistake of a user shows as this error.
REPEATED = "Hit retry limit"

# A case whose local half fails in such a way compares nothing.
MISTAKES = {"AttributeError", "NameError", "TypeError"}

# The local library puts a category before the engine's words; an error over HTTP has a status there.
CATEGORIES = ("Invalid input, ", "Invalid user input: ", "lance error: ", "LanceDBError: ", "[Ss]chema [Ee]rror: ", "[Nn]ot supported: ", "Namespace error: ")
CATEGORY = re.compile(f"^(?:{'|'.join(CATEGORIES)}|LanceError\\([^)]*\\): )*")

# Metadata of times, random ids, and digests of them.
VOLATILE = re.compile(r"computed_refresh\.source_signature|mv\.(?:incarnation|refreshed_at_ms|source_version_ts)")

# The engine's errors end with a place in its sources.
PLACE = re.compile(r",? [^ ]*\.rs:\d+(?::\d+)?$")


def plain(value):
    """Returns an answer in a form that can be compared: tables as their schema and rows."""
    if isinstance(value, pa.RecordBatch):
        value = pa.Table.from_batches([value])
    if isinstance(value, pa.Table):
        return {"schema": plain(value.schema), "rows": value.to_pylist()}
    if isinstance(value, pa.Schema):
        return [metadata_of(value), *(f"{field.name}: {field.type} {metadata_of(field)}" for field in value)]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return repr(value)


def metadata_of(described):
    """Returns the metadata of a schema or a field, in an order of its own."""
    pairs = {name.decode(): text.decode() for name, text in (described.metadata or {}).items()}
    return {name: "..." if VOLATILE.fullmatch(name) else pairs[name] for name in sorted(pairs)}


def is_table(value):
    return isinstance(value, dict) and set(value) == {"schema", "rows"}


def sorted_rows(value):
    return sorted(map(repr, value["rows"]))


class Failure:
    """The error of a call."""

    def __init__(self, error: Exception):
        self.kind = type(error).__name__
        # Every refusal over HTTP has the client's own class, which says nothing about the mistake.
        self.over_http = isinstance(error, LanceDBClientError)
        self.text = str(error)

    @property
    def words(self) -> str:
        """The text of a local error without what a remote one cannot have."""
        return PLACE.sub("", CATEGORY.sub("", self.text.splitlines()[0] if self.text else ""))

    def __repr__(self):
        return f"{self.kind}: {self.text}"


def difference(local, remote):
    """Says in what two outcomes differ; None when they are equal."""
    if isinstance(local, Failure) != isinstance(remote, Failure):
        return "only the local library refuses" if isinstance(local, Failure) else "only the gateway refuses"
    if isinstance(local, Failure):
        if REPEATED in remote.text:
            return "the client repeats the call"
        if not remote.over_http and local.kind != remote.kind:
            return "class of the error"
        escaped = local.words.replace("\\", "\\\\").replace('"', '\\"')
        return None if local.words in remote.text or escaped in remote.text else "words of the error"
    if local == remote:
        return None
    if is_table(local) and is_table(remote):
        if local["schema"] != remote["schema"]:
            return "schema"
        return "order of rows" if sorted_rows(local) == sorted_rows(remote) else "rows"
    return "value"


class Beside:
    """A local database and the gateway's, side by side, both without tables.

    The local database is opened with `options`.
    """

    def __init__(self, uri: str, **options):
        self.folder = tempfile.TemporaryDirectory()
        self._options = options
        self._remote_options = {"api_key": "k", "host_override": uri}
        self.local = lancedb.connect(self.folder.name, **options)
        self.remote = lancedb.connect("db://beside", **self._remote_options)
        self.cases: list[str] = []
        self.differences: list[dict] = []

    def same(self, name, work):
        """Does the work on both; the answers have to be equal, and so have the refusals."""
        self._compare(name, self._outcome(work, self.local), self._outcome(work, self.remote))

    def same_async(self, name, work):
        """Does asynchronous work with both clients; see `same`."""
        self._compare(name, *self._outcomes_async(work))

    def refused(self, name, work, *words, local=True):
        """Does the work on both; both have to fail with all the words, the gateway at the first try.

        `local` says whether the words are in the local library's text, too.
        """
        self._refused(name, self._outcome(work, self.local), self._outcome(work, self.remote), words, local)

    def refused_async(self, name, work, *words, local=True):
        """Does asynchronous work with both clients; see `refused`."""
        self._refused(name, *self._outcomes_async(work), words, local)

    def end(self):
        """Removes the tables of both."""
        for namespace in self.remote.list_namespaces().namespaces:
            self.remote.drop_namespace([namespace], behavior="cascade")
        for table in self.remote.list_tables().tables:
            self.remote.drop_table(table)
        self.folder.cleanup()

    def _outcome(self, work, db):
        try:
            return plain(work(db))
        except Exception as error:
            return Failure(error)

    def _outcomes_async(self, work):
        async def outcome(uri, options):
            db = await lancedb.connect_async(uri, **options)
            try:
                return plain(await work(db))
            except Exception as error:
                return Failure(error)

        local = asyncio.run(outcome(self.folder.name, self._options))
        return local, asyncio.run(outcome("db://beside", self._remote_options))

    def _compare(self, name, local, remote):
        self._note(name, difference(local, remote), local, remote)

    def _refused(self, name, local, remote, words, in_local):
        missing = [word for word in words if word not in repr(remote)]
        missing += [word for word in words if in_local and word not in repr(local)]
        if not isinstance(local, Failure) or not isinstance(remote, Failure):
            found = difference(local, remote) or "both accept it"
        elif REPEATED in remote.text:
            found = "the client repeats the call"
        else:
            found = f"without {', '.join(missing)}" if missing else None
        self._note(name, found, local, remote)

    def _note(self, name, found, local, remote):
        assert name not in self.cases, f"two cases are called {name}"
        assert not isinstance(local, Failure) or local.kind not in MISTAKES, f"{name} is wrong in itself: {local}"
        self.cases.append(name)
        if found is not None:
            texts = {"local": repr(local)[:2000], "remote": repr(remote)[:2000]}
            self.differences.append({"case": name, "difference": found, **texts})


FRUIT = ["red apple", "green plum", "red pear", "blue plum", "yellow quince"]


def fruit(count: int, first: int = 0) -> pa.Table:
    """Returns rows with an id, a text and a vector."""
    ids = list(range(first, first + count))
    vectors = pa.array([[float(i), 0.0] for i in ids], pa.list_(pa.float32(), 2))
    texts = [FRUIT[i % len(FRUIT)] for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "text": texts, "vector": vectors})


WAIT = timedelta(seconds=60)
