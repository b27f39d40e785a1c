"""Calls every public method of LanceDB's Python clients, remote beside local, and prints what came of each as JSON.

The arguments are the addresses of a recorder in front of a gateway, and of the gateway itself.
"""

import asyncio
import contextlib
import inspect
import json
import sys
import urllib.request
import warnings
from importlib.metadata import version

from lancedb.db import AsyncConnection
from lancedb.job import AsyncJob, Job
from lancedb.materialized_view import AsyncMaterializedView, MaterializedView
from lancedb.remote.db import RemoteDBConnection
from lancedb.remote.table import RemoteTable
from lancedb.table import AsyncBranches, AsyncTable, AsyncTags, Branches, Tags
from methods.connection import CONNECTION
from methods.ground import Ground, Local, Remote, drive, drive_async, plain, rows_of
from methods.handles import BRANCHES, JOB, MATERIALIZED_VIEW, TAGS
from methods.table import TABLE

# The classes of an object: the synchronous client's, the asynchronous client's, and the calls of both.
OBJECTS = {
    "connection": (RemoteDBConnection, AsyncConnection, CONNECTION),
    "table": (RemoteTable, AsyncTable, TABLE),
    "tags": (Tags, AsyncTags, TAGS),
    "branches": (Branches, AsyncBranches, BRANCHES),
    "materialized view": (MaterializedView, AsyncMaterializedView, MATERIALIZED_VIEW),
    "job": (Job, AsyncJob, JOB),
}

recorder, gateway = sys.argv[1:]


def methods_of(kind):
    return [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]


def requests():
    """The requests since the last call, with their statuses."""
    with urllib.request.urlopen(f"{recorder}/recorded") as answer:
        return json.load(answer)


def attempt(run):
    """The answer of a call as data, or its error."""
    try:
        return {"answer": plain(run())}
    except Exception as error:  # noqa: BLE001 - the error is the result.
        return {"error": f"{type(error).__name__}: {error}"}


def try_sync(place, call):
    db = place.connect()
    ground = Ground(db, db.create_table("t", rows_of([1, 2, 3])), False)
    requests()
    return attempt(lambda: drive(call, ground))


async def on_async(place, call):
    db = await place.connect_async()
    ground = Ground(db, await db.create_table("t", rows_of([1, 2, 3])), True)
    requests()
    return await drive_async(call, ground)


def try_async(place, call):
    return attempt(lambda: asyncio.run(on_async(place, call)))


def trial(object_name, method, client, call):
    """What came of a call: remote and local, and the requests of the remote one."""
    run = try_async if client == "async" else try_sync
    results = {}
    for name, place in (("local", Local()), ("remote", Remote(recorder, gateway))):
        try:
            results[name] = run(place, call)
            if name == "remote":
                results["requests"] = requests()
        finally:
            place.clear()
    return {"object": object_name, "method": method, "client": client, **results}


def main():
    warnings.simplefilter("ignore")
    trials = []
    missing = []
    with contextlib.redirect_stdout(sys.stderr):
        for name, (sync, asynchronous, calls) in OBJECTS.items():
            known = set(methods_of(sync)) | set(methods_of(asynchronous))
            missing += [f"{name}.{each} has no call" for each in sorted(known - set(calls))]
            missing += [f"{name}.{each} does not exist" for each in sorted(set(calls) - known)]
            for client, kind in (("sync", sync), ("async", asynchronous)):
                trials += [trial(name, each, client, calls[each]) for each in methods_of(kind) if each in calls]
    print(json.dumps({"version": version("lancedb"), "missing": missing, "trials": trials}))


main()
