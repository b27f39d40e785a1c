"""What the client scripts share."""

import json
import sys
import traceback
from contextlib import contextmanager
from importlib.metadata import version

import pyarrow as pa


class Session:
    """Counts the calls of a client and those whose result was the right one; `lacks` names operations that it cannot call."""

    def __init__(self, client: str, package: str, lacks: frozenset[str] = frozenset()):
        self.client, self.version = client, version(package)
        self.lacks = lacks
        self.calls = self.passed = 0

    @contextmanager
    def check(self, call: str):
        """One call and the checks of its result; a failed one is told and the session goes on."""
        self.calls += 1
        try:
            yield
            self.passed += 1
        except Exception:
            print(f"{self.client}: {call}", traceback.format_exc(limit=-3), sep="\n", file=sys.stderr)

    def end(self) -> None:
        """Prints the figures as one line of JSON; the script fails when a call did."""
        print(json.dumps({name: getattr(self, name) for name in ("client", "version", "calls", "passed")}))
        if self.passed < self.calls:
            sys.exit(1)


def stream(table: pa.Table, **options) -> bytes:
    """The Arrow IPC stream of a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def people(count: int = 3, start: int = 1) -> pa.Table:
    """A small table with an id, a name and a vector."""
    ids = list(range(start, start + count))
    vectors = pa.array([[float(i), 0.0] for i in ids], pa.list_(pa.float32(), 2))
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"p{i}" for i in ids], "vector": vectors})


def read_file(data: bytes) -> pa.Table:
    """The rows of an Arrow IPC file."""
    return pa.ipc.open_file(pa.BufferReader(data)).read_all()


def read_arrow(data: bytes) -> pa.Table:
    """The rows of an Arrow IPC file or stream."""
    opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    return opened(pa.BufferReader(data)).read_all()


class raises:
    """Checks that a block raises exactly the given class of error."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        assert kind is not None, f"{self.kind.__name__} was not raised"
        assert kind is self.kind, f"{kind.__name__} ({error}) was raised, not {self.kind.__name__}"
        self.error = error
        return True
