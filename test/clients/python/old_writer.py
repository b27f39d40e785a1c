"""Makes the fixtures of tables that older releases of pylance wrote.

    old_writer.py DIRECTORY     writes a dataset with the pylance that is installed, and prints its release and all of
                                its files as JSON

Works with every release from 0.5.10 on. The fixtures in test/fixtures/dir/testdata/old-writers.json are its
output for several releases, by release. Those up to 8.0 run on Python 3.11 with pyarrow 15 or 16 and numpy below 2:

    pip install --no-deps --target RELEASE pylance==RELEASE
    PYTHONPATH=RELEASE python old_writer.py $(mktemp -d)
"""

import json
import sys
from base64 import b64encode
from pathlib import Path

import lance
import pyarrow as pa


def write(directory: str) -> dict:
    path = Path(directory) / "table"
    ids = pa.array([0, 1, 2], pa.int64())
    lance.write_dataset(pa.table({"id": ids, "name": ["a", "b", None]}), str(path))
    # One fragment: its id is 0, and so is the largest one, which older releases then leave out.
    lance.dataset(str(path)).delete("id = 1")
    files = sorted(file for file in path.rglob("*") if file.is_file())
    packed = {str(file.relative_to(path)): b64encode(file.read_bytes()).decode() for file in files}
    return {lance.__version__: packed}


if __name__ == "__main__":
    print(json.dumps(write(sys.argv[1])))
