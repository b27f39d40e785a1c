"""Joins the fragments of a table every few seconds, as a program beside the gateway: compact.py TABLE SECONDS"""

import sys
import time

import lance

table, pause = sys.argv[1], float(sys.argv[2])
while True:
    time.sleep(pause)
    try:
        # The bounds of the gateway's upkeep: whole fragments of the engine's size, and a tenth of deleted rows.
        lance.dataset(table).optimize.compact_files(materialize_deletions_threshold=0.1)
    except OSError as error:
        # A write of the gateway was faster.
        print(error, file=sys.stderr)
