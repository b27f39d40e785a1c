"""Where a call is tried: a new connection with a small table, remote or local, synchronous or asynchronous."""

import inspect
import shutil
import tempfile
from dataclasses import dataclass
from typing import Any

import lancedb
import pyarrow as pa

TEXTS = ["red apple", "green apple", "blue plum"]


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("key", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), 2)),
    ]
)


def rows_of(ids):
    """Rows with a number, twice, a text and a vector."""
    vectors = [[float(i), 1.0] for i in ids]
    columns = [pa.array(ids, pa.int64()), pa.array(ids, pa.int64()), [TEXTS[i % len(TEXTS)] for i in ids], vectors]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA)], schema=SCHEMA)


@dataclass
class Ground:
    """What a call works with."""

    db: Any
    t: Any
    asynchronous: bool
    place: Any

    def catalog(self):
        """Connects to the catalog of the place."""
        return self.place.catalog_async() if self.asynchronous else self.place.catalog()


def drive(call, ground):
    """Makes a call of the synchronous client; a generator yields the calls that the asynchronous client awaits."""
    result = call(ground)
    if not inspect.isgenerator(result):
        return result
    value = None
    while True:
        try:
            value = result.send(value)
        except StopIteration as stop:
            return stop.value


async def drive_async(call, ground):
    """Makes a call of the asynchronous client."""
    result = call(ground)
    if not inspect.isgenerator(result):
        return await result if inspect.isawaitable(result) else result
    value = None
    while True:
        try:
            value = result.send(value)
        except StopIteration as stop:
            return stop.value
        if inspect.isawaitable(value):
            value = await value


# Without stable row ids the library makes no views of a table.
OPTIONS = {"new_table_enable_stable_row_ids": "true"}


class Local:
    """The library on a directory of its own for each call."""

    def connect(self):
        self.path = tempfile.mkdtemp(prefix="lancedb-methods-")
        return lancedb.connect(self.path, storage_options=OPTIONS)

    def connect_async(self):
        self.path = tempfile.mkdtemp(prefix="lancedb-methods-")
        return lancedb.connect_async(self.path, storage_options=OPTIONS)

    def catalog(self):
        raise NotImplementedError("the library has no catalog of a directory")

    catalog_async = catalog

    def clear(self):
        shutil.rmtree(self.path)


class Remote:
    """The client of a gateway, whose tables are dropped after each call."""

    def __init__(self, uri, direct_uri):
        self.uri = uri
        self.direct = lancedb.connect("db://admin", api_key="k", host_override=direct_uri)

    def connect(self):
        return lancedb.connect("db://shop", api_key="k", host_override=self.uri)

    def connect_async(self):
        return lancedb.connect_async("db://shop", api_key="k", host_override=self.uri)

    def catalog(self):
        return lancedb.connect_catalog(self.uri, api_key="k")

    def catalog_async(self):
        return lancedb.connect_catalog_async(self.uri, api_key="k")

    def clear(self):
        for name in self.direct.list_namespaces().namespaces:
            self.direct.drop_namespace([name], behavior="cascade")
        for name in self.direct.list_tables().tables:
            self.direct.drop_table(name)


def plain(value):
    """An answer as data that can be compared; of other objects only their class."""
    if isinstance(value, (pa.Table, pa.RecordBatch, pa.Array)):
        return plain(value.to_pylist())
    if isinstance(value, pa.Schema):
        return [f"{field.name}: {field.type}" for field in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return type(value).__name__.removeprefix("Remote").removeprefix("Lance")
