"""Calls every public method of LanceDB's Python clients, remote beside local, and prints what came of each as JSON.

The arguments are the addresses of a recorder in front of a gateway, and of the gateway itself.
"""

import asyncio
import contextlib
import json
import sys
import urllib.request
import warnings
from importlib.metadata import version

from methods.ground import Ground, Local, Remote, drive, drive_async, plain, rows_of
from methods.objects import OBJECTS, methods_of, missing_calls, missing_objects

recorder, gateway = sys.argv[1:]


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
    ground = Ground(db, db.create_table("t", rows_of([1, 2, 3])), False, place)
    requests()
    return attempt(lambda: drive(call, ground))


async def on_async(place, call):
    db = await place.connect_async()
    ground = Ground(db, await db.create_table("t", rows_of([1, 2, 3])), True, place)
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
    with contextlib.redirect_stdout(sys.stderr):
        for name, (sync, asynchronous, calls) in OBJECTS.items():
            for client, kind in (("sync", sync), ("async", asynchronous)):
                trials += [trial(name, each, client, calls[each]) for each in methods_of(kind) if each in calls]
    missing = [*missing_objects(), *missing_calls()]
    print(json.dumps({"version": version("lancedb"), "missing": missing, "trials": trials}))


main()
