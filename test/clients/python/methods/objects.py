"""The objects whose methods are called, and the classes of the package beside them."""

import dataclasses
import enum
import importlib
import inspect
import pkgutil

import lancedb
from lancedb.catalog import AsyncCatalog, Catalog
from lancedb.db import AsyncConnection
from lancedb.job import AsyncJob, Job
from lancedb.materialized_view import AsyncMaterializedView, MaterializedView
from lancedb.remote.db import RemoteDBConnection
from lancedb.remote.table import RemoteTable
from lancedb.table import AsyncBranches, AsyncTable, AsyncTags, Branches, Tags
from pydantic import BaseModel

from .catalog import CATALOG
from .connection import CONNECTION
from .handles import BRANCHES, JOB, MATERIALIZED_VIEW, TAGS
from .table import TABLE

# The classes of an object: the synchronous client's, the asynchronous client's, and the calls of both.
OBJECTS = {
    "catalog": (Catalog, AsyncCatalog, CATALOG),
    "connection": (RemoteDBConnection, AsyncConnection, CONNECTION),
    "table": (RemoteTable, AsyncTable, TABLE),
    "tags": (Tags, AsyncTags, TAGS),
    "branches": (Branches, AsyncBranches, BRANCHES),
    "materialized view": (MaterializedView, AsyncMaterializedView, MATERIALIZED_VIEW),
    "job": (Job, AsyncJob, JOB),
}

# Modules and classes whose methods are not called, with the reason.
OTHERS = {
    "lancedb._blob.BlobFile": "Reads what `fetch_blob_files` of a table opens.",
    "lancedb._lancedb": "Native counterparts of the public classes.",
    "lancedb._wal_hybrid": "A part of hybrid queries.",
    "lancedb.arrow": "Reads the batches of an answer.",
    "lancedb.background_loop": "Runs the asynchronous client for the synchronous one.",
    "lancedb.common": "Types of arguments.",
    "lancedb.conftest": "The package's own tests.",
    "lancedb.context": "Computes on the client.",
    "lancedb.db.LanceDBConnection": "Connects to a directory.",
    "lancedb.embeddings": "Computes on the client.",
    "lancedb.exceptions": "Errors.",
    "lancedb.expr": "Builds conditions and expressions.",
    "lancedb.functions": "Describes functions.",
    "lancedb.index": "Describes indices.",
    "lancedb.integrations": "Computes on the client.",
    "lancedb.merge": "Builds what `merge_insert` of a table sends.",
    "lancedb.namespace": "Connects through a namespace client of another package.",
    "lancedb.otel": "Counts on the client.",
    "lancedb.permutation": "Reads through the queries of a table.",
    "lancedb.pydantic": "Describes schemas.",
    "lancedb.query": "Builds what `search` and `query` of a table send.",
    "lancedb.remote.errors": "Errors.",
    "lancedb.remote.header": "Makes headers.",
    "lancedb.remote.oauth": "Makes headers.",
    "lancedb.rerankers": "Computes on the client.",
    "lancedb.sql": "Results of SQL, which goes to a server of Arrow Flight SQL.",
    "lancedb.streaming": "Reads through the queries of a table.",
    "lancedb.table.LanceTable": "A table of a directory.",
}


def methods_of(kind):
    return [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]


def is_data(kind):
    """Whether a class only has fields."""
    if dataclasses.is_dataclass(kind) or issubclass(kind, (BaseModel, enum.Enum, BaseException)):
        return True
    return not any(inspect.isfunction(getattr(kind, each)) for each in methods_of(kind))


def classes():
    """Every public class with methods that the package defines, by its full name."""
    for found in pkgutil.walk_packages(lancedb.__path__, "lancedb."):
        # Modules that need further packages are among the others.
        if is_other(found.name):
            continue
        module = importlib.import_module(found.name)
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == found.name and not name.startswith("_") and not is_data(kind):
                yield f"{found.name}.{name}", kind


def is_other(name):
    """Whether a class or a module, or a module around it, is among the others."""
    parts = name.split(".")
    return any(".".join(parts[: end + 1]) in OTHERS for end in range(len(parts)))


def missing_objects():
    """Classes of the package that are neither objects, nor bases of one, nor among the others."""
    called = [kind for sync, asynchronous, _ in OBJECTS.values() for kind in (sync, asynchronous)]
    return [
        f"{name} is no object"
        for name, kind in classes()
        if not is_other(name) and not any(issubclass(each, kind) for each in called)
    ]


def missing_calls():
    """Methods of objects without a call, and calls without a method."""
    for name, (sync, asynchronous, calls) in OBJECTS.items():
        known = set(methods_of(sync)) | set(methods_of(asynchronous))
        yield from (f"{name}.{each} has no call" for each in sorted(known - set(calls)))
        yield from (f"{name}.{each} does not exist" for each in sorted(set(calls) - known))
