"""Kinds of work that users of LanceDB do, each a function that does it on both sides and compares."""

from . import catalog, clones, columns, frames, history, indices, logs, rows, searches, vectors, writes

MODULES = [rows, vectors, searches, writes, history, columns, indices, frames, catalog, clones, logs]

# By the name of the kind.
KINDS = {kind.__name__.replace("_", " "): kind for module in MODULES for kind in module.KINDS}
