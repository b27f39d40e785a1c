"""Does every kind of work on a local directory and through the gateway, and prints in what the answers differ as JSON.

The arguments are the address of the gateway, and the names of kinds; without names all of them.
"""

import contextlib
import json
import sys
import warnings
from importlib.metadata import version

from beside import Beside
from kinds import KINDS

# Without stable row ids the library makes no views of a table.
OPTIONS = {"views": {"storage_options": {"new_table_enable_stable_row_ids": "true"}}}


def compared(uri, name):
    """Does a kind of work, and returns its comparisons."""
    both = Beside(uri, **OPTIONS.get(name, {}))
    try:
        KINDS[name](both)
    finally:
        both.end()
    return {"kind": name, "cases": both.cases, "differences": both.differences}


def main(uri, *names):
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        results = [compared(uri, name) for name in names or KINDS]
    print(json.dumps({"version": version("lancedb"), "kinds": results}))


main(*sys.argv[1:])
