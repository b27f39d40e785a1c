"""Updates and deletes rows of a table while upkeep joins its fragments on Ray. Arguments: the address of a gateway, and what to do with a table of which name:
`make` it, with an index if `indexed` follows and with managed versions if `managed` does; `write` to it until compactions have ended meanwhile, and compare its rows."""

import json
import sys
import time

import lancedb
import pyarrow as pa
from lancedb.index import BTree
from support import call, fragments, insert, jobs, until, uri

PARTS, ROWS, GROUPS = 6, 5_000, 40
COMPACTIONS = 2
PAUSE = 0.3
todo, name, *rest = sys.argv[2:]


def ended(state):
    return [job for job in jobs("compact_table") if (job["table"], job["state"]) == (name, state)]


def again(work):
    """Does work that may be done twice, also while no gateway answers."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return work()
        except (OSError, AssertionError) as error:
            if time.monotonic() > deadline:
                raise AssertionError(f"no gateway does it: {error}") from None
            time.sleep(0.2)


def word(group, turn):
    return f"{group} was changed in turn {turn}"


def write():
    """Changes the rows of a group at a time; the last group loses a row at a time."""
    turn, seen = 0, len(ended("DONE"))
    deadline = time.monotonic() + 300
    while len(again(lambda: ended("DONE"))) < seen + COMPACTIONS:
        assert time.monotonic() < deadline, jobs("compact_table")
        group = turn % (GROUPS - 1)
        change = {"predicate": f"id % {GROUPS} = {group}", "updates": [["word", f"'{word(group, turn)}'"]]}
        again(lambda: call(f"table/{name}/update", change))
        gone = {"predicate": f"id = {turn * GROUPS + GROUPS - 1}"}
        again(lambda: call(f"table/{name}/delete", gone))
        turn += 1
        time.sleep(PAUSE)
    return turn


def check(turns):
    """Compares all rows with what was written, by a scan and by the index."""
    last = {turn % (GROUPS - 1): turn for turn in range(turns)}
    count = PARTS * ROWS
    expected = {
        at: word(at % GROUPS, last[at % GROUPS]) if at % GROUPS in last else "new"
        for at in range(count)
        if not (at % GROUPS == GROUPS - 1 and at // GROUPS < turns)
    }
    table = lancedb.connect("db://any", api_key="unused", host_override=uri).open_table(name)
    rows = table.search().select(["id", "word"]).limit(2 * count).to_arrow().to_pylist()
    found = {row["id"]: row["word"] for row in rows}
    assert len(rows) == len(found) == len(expected), (len(rows), len(found), len(expected))
    assert found == expected, [(at, found[at], expected[at]) for at in found if found[at] != expected.get(at)][:5]
    for at in (0, GROUPS - 1, 7_001, count - 1, count - 2):
        own = table.search().where(f"id = {at}").select(["word"]).to_list()
        assert [row["word"] for row in own] == ([expected[at]] if at in expected else []), (at, own)


if todo == "make":
    tracking = {"table_version_tracking_enabled": "true"} if "managed" in rest else {}
    call(f"table/{name}/declare", {"properties": {"lance-gateway.upkeep.fragments": "10", **tracking}})
    for number in range(PARTS):
        ids = range(number * ROWS, (number + 1) * ROWS)
        insert(name, pa.table({"id": list(ids), "word": ["new"] * ROWS}))
    if "indexed" in rest:
        table = lancedb.connect("db://any", api_key="unused", host_override=uri).open_table(name)
        table.create_index("id", config=BTree())
else:
    turns = write()
    check(turns)
    until(lambda: fragments(name) <= 15, lambda: [fragments(name), jobs("compact_table")])
    check(turns)
    print(json.dumps({"turns": turns, "done": len(ended("DONE")), "failed": [job for job in ended("FAILED")]}))
