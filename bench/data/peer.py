"""The Rust REST adapter of the pylance wheel, and the Arrow bodies that both servers get.

    peer.py serve ROOT [OPTIONS]    serves a directory; the first line printed is the port. OPTIONS is JSON with the
                                    options of the storage
    peer.py bodies FOLDER           writes the bodies as Arrow IPC streams
"""

import json
import os
import pathlib
import sys
import time

DIMENSIONS = 128
# The adapter refuses bodies of more than 2,097,152 bytes.
SMALL_BYTES = 2_000_000
LARGE_BYTES = 1024**3 - 1_000_000
ROWS_PER_BATCH = 4096


def serve(root: str, options: str = "{}") -> None:
    # Warnings of the engine cost it time; the gateway leaves them out, too.
    os.environ["LANCE_LOG"] = "error"
    from lance.namespace import RestAdapter

    storage = {f"storage.{key}": value for key, value in json.loads(options).items()}
    with RestAdapter("dir", {"root": root, **storage}, port=0) as adapter:
        print(adapter.port, flush=True)
        while True:
            time.sleep(3600)


def bodies(folder: str) -> None:
    write(pathlib.Path(folder, "small.arrows"), SMALL_BYTES)
    write(pathlib.Path(folder, "large.arrows"), LARGE_BYTES)


def write(path: pathlib.Path, size: int) -> None:
    import numpy
    import pyarrow

    random = numpy.random.default_rng(1)
    schema = pyarrow.schema(
        [
            ("id", pyarrow.int64()),
            ("text", pyarrow.string()),
            ("vector", pyarrow.list_(pyarrow.float32(), DIMENSIONS)),
        ]
    )
    written = 0
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, schema) as stream:
        while True:
            values = random.random((ROWS_PER_BATCH, DIMENSIONS), dtype=numpy.float32)
            ids = numpy.arange(written, written + ROWS_PER_BATCH)
            columns = [
                pyarrow.array(ids),
                pyarrow.array([f"row {number} of the table" for number in ids]),
                pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values.ravel()), DIMENSIONS),
            ]
            batch = pyarrow.record_batch(columns, schema=schema)
            room = size - sink.tell()
            if pyarrow.ipc.get_record_batch_size(batch) > room:
                rows = ROWS_PER_BATCH * room // pyarrow.ipc.get_record_batch_size(batch) - 8
                stream.write_batch(batch.slice(0, rows))
                return
            stream.write_batch(batch)
            written += ROWS_PER_BATCH


if __name__ == "__main__":
    {"serve": serve, "bodies": bodies}[sys.argv[1]](*sys.argv[2:])
