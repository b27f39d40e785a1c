"""Does random work on a local directory and through the gateway, and prints in what the answers differ as JSON.

    random_beside.py URI SEED SESSIONS STEPS

Each session has a seed of its own, from SEED on. It ends at the first difference. The words and classes of errors may
differ: the kinds of work compare them.
"""

import contextlib
import json
import sys
import warnings

from beside import Beside, Failure, difference
from random_work import Work

WORDING = ("words of the error", "class of the error")


def settled(value):
    """Returns an outcome in a form in which NaN equals itself."""
    if isinstance(value, Failure):
        return value
    if isinstance(value, dict) and set(value) == {"schema", "rows"}:
        return {"schema": value["schema"], "rows": [repr(row) for row in value["rows"]]}
    return repr(value)


def found_in(local, remote):
    """Says in what two outcomes differ; None when they are equal."""
    if isinstance(remote, Failure) and "500 Internal" in remote.text:
        return "the gateway fails"
    found = difference(local, remote)
    return None if found in WORDING else found


def state(table, _db):
    rows = table.search().to_arrow()
    return [table.version, rows.sort_by("id") if "id" in rows.column_names else rows]


def session(both, seed, steps):
    """Returns the number of comparisons, and the first difference."""
    work = Work(seed)
    first = work.rows(work.rng.randint(1, 12))
    compared = 0
    plan = [("create", lambda _, db: db.create_table("t", first).version, False)]
    while compared < steps:
        name, run, changes = plan.pop() if plan else work.step()
        if changes:
            plan.append((f"the rows after {name}", state, False))
        opened = (lambda db: None) if compared == 0 else (lambda db: db.open_table("t"))
        local, remote = (settled(both._outcome(lambda db: run(opened(db), db), db)) for db in (both.local, both.remote))
        compared += 1
        found = found_in(local, remote)
        if found is not None:
            texts = {"local": repr(local)[:2000], "remote": repr(remote)[:2000]}
            return compared, {"seed": seed, "step": compared, "case": name, "difference": found, **texts}
    return compared, None


def main(uri, first, count, steps):
    warnings.simplefilter("ignore")
    comparisons, differences = 0, []
    with contextlib.redirect_stdout(sys.stderr):
        for seed in range(int(first), int(first) + int(count)):
            both = Beside(uri)
            try:
                compared, found = session(both, seed, int(steps))
            finally:
                both.end()
            comparisons += compared
            differences += [found] if found else []
    print(json.dumps({"comparisons": comparisons, "differences": differences}))


main(*sys.argv[1:])
