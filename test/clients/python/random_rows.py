"""Does random updates, merges, deletions, counts and queries with pylance and through the gateway, and prints in what they differ as JSON.

    random_rows.py URI SEED SESSIONS CASES

Each session has a seed and a table of its own, and ends at its first difference. The rows are compared after each change and at the end.
"""

import json
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import urllib3
from row_work.cases import REFUSED, UNSUPPORTED, Cases
from row_work.gateway import Remote

# Two wait while the gateway works for the others.
THREADS = 4


def session(pool, uri, cases, seed):
    """Returns the number of cases, how many of them changed rows or were refused, and the first difference."""
    with tempfile.TemporaryDirectory() as folder:
        work = Cases(random.Random(seed), f"{folder}/t.lance", Remote(pool, uri, f"rows{seed}"))
        kinds = {"done": 0, REFUSED: 0, UNSUPPORTED: 0}
        for case in range(1, cases + 1):
            name, local, act = work.case()
            remote = work.outcome(act)
            kinds[local if local in (REFUSED, UNSUPPORTED) else "done"] += 1
            # A refusal by pylance does not say which of two mistakes the gateway finds first.
            same = local == remote or (local, remote) == (REFUSED, UNSUPPORTED)
            if same and (work.has_changed() or case == cases):
                local, remote = work.rows_here(), work.rows_there()
                same = local == remote
            if not same:
                texts = {"local": repr(local)[:2000], "remote": repr(remote)[:2000]}
                return case, kinds, {"seed": seed, "step": case, "case": name, **texts}
        work.remote.drop()
        return cases, kinds, None


def main(uri, first, count, cases):
    pool = urllib3.PoolManager(maxsize=THREADS)
    seeds = range(int(first), int(first) + int(count))
    with ThreadPoolExecutor(THREADS) as threads:
        results = list(threads.map(partial(session, pool, uri, int(cases)), seeds))
    kinds = {kind: sum(done[kind] for _, done, _ in results) for kind in ("done", REFUSED, UNSUPPORTED)}
    differences = [found for _, _, found in results if found]
    print(json.dumps({"cases": sum(number for number, _, _ in results), **kinds, "differences": differences}))


main(*sys.argv[1:])
